// What came of a form, carried in a cookie to the one page it is for, which reads it once.

/** `fields` names the fields that are wrong. */
export type Flash = { tone: 'done' | 'failed'; text: string; fields?: readonly string[] };

const name = 'tessera_said';
const shownSeconds = 60;
// Browsers drop cookies beyond 4 kB, and a sign may take three bytes.
const longest = 800;

const pathOf = (address: string): string => URL.parse(address, 'http://ops')?.pathname ?? '';

/** The cookie that brings `flash` to the page at `to`. */
export const flashCookie = ({ tone, text, fields = [] }: Flash, to: string): string => {
  const said = { to: pathOf(to), tone, text: text.slice(0, longest), fields: fields.slice(0, 10) };
  const value = Buffer.from(JSON.stringify(said));
  return `${name}=${value.toString('base64url')}; Path=/ops; Max-Age=${shownSeconds}; HttpOnly; SameSite=Strict`;
};

/** The cookie that forgets it. */
export const noFlashCookie = `${name}=; Path=/ops; Max-Age=0; HttpOnly; SameSite=Strict`;

/** What the Cookie header brings to the page at `path`; whatever is not ours, or for another page, is nothing. */
export const readFlash = (cookies: string | undefined, path: string): Flash | undefined => {
  const [, value] = new RegExp(`(?:^|; )${name}=([\\w-]+)`).exec(cookies ?? '') ?? [];
  if (value === undefined) return undefined;
  try {
    const said = JSON.parse(Buffer.from(value, 'base64url').toString('utf8')) as Flash & {
      to?: unknown;
    };
    // Another tab that refreshes itself at this moment must not take the word away.
    if (said.to !== pathOf(path)) return undefined;
    return {
      tone: said.tone === 'done' ? 'done' : 'failed',
      text: String(said.text).slice(0, longest),
      fields: [said.fields ?? []].flat().map(String),
    };
  } catch {
    return undefined;
  }
};

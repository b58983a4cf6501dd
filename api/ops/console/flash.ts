// What came of a form, carried to the next page in a cookie that is read once.

/** `fields` names the fields that are wrong. */
export type Flash = { tone: 'done' | 'failed'; text: string; fields?: readonly string[] };

const name = 'tessera_said';
const shownSeconds = 60;
const longest = 1_000;

/** The cookie that brings `flash` to the next page. */
export const flashCookie = ({ tone, text, fields = [] }: Flash): string => {
  const said = { tone, text: text.slice(0, longest), fields: fields.slice(0, 10) };
  const value = Buffer.from(JSON.stringify(said));
  return `${name}=${value.toString('base64url')}; Path=/ops; Max-Age=${shownSeconds}; HttpOnly; SameSite=Strict`;
};

/** The cookie that forgets it. */
export const noFlashCookie = `${name}=; Path=/ops; Max-Age=0; HttpOnly; SameSite=Strict`;

/** Reads the Cookie header; whatever is not ours is nothing. */
export const readFlash = (cookies: string | undefined): Flash | undefined => {
  const [, value] = new RegExp(`(?:^|; )${name}=([\\w-]+)`).exec(cookies ?? '') ?? [];
  if (value === undefined) return undefined;
  try {
    const said = JSON.parse(Buffer.from(value, 'base64url').toString('utf8')) as Flash;
    return {
      tone: said.tone === 'done' ? 'done' : 'failed',
      text: String(said.text).slice(0, longest),
      fields: [said.fields ?? []].flat().map(String),
    };
  } catch {
    return undefined;
  }
};

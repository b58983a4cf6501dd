// What came of a form, carried in a cookie to the one page it is for, which reads it once.
import { cookieNameOf } from '../cookies.ts';

/** `fields` names the fields that are wrong. */
export type Flash = { tone: 'done' | 'failed'; text: string; fields?: readonly string[] };

const name = 'tessera_said';
const shownSeconds = 60;
// Browsers drop cookies beyond 4 kB, and a sign may take three bytes.
const longest = 800;

const pathOf = (address: string): string => URL.parse(address, 'http://ops')?.pathname ?? '';

const cookie = (value: string, seconds: number, secure: boolean): string =>
  [
    `${cookieNameOf(name, secure)}=${value}`,
    `Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict`,
    ...(secure ? ['Secure'] : []),
  ].join('; ');

/** The cookie that brings `flash` to the page at `to`; `secure` says whether that goes over TLS. */
export const flashCookie = (flash: Flash, to: string, secure: boolean): string => {
  const { tone, text, fields = [] } = flash;
  const said = { to: pathOf(to), tone, text: text.slice(0, longest), fields: fields.slice(0, 10) };
  const value = Buffer.from(JSON.stringify(said));
  return cookie(value.toString('base64url'), shownSeconds, secure);
};

/** The cookie that forgets it. */
export const noFlashCookie = (secure: boolean): string => cookie('', 0, secure);

/** What the Cookie header brings to the page at `path`; whatever is not ours, or for another page, is nothing. */
export const readFlash = (
  cookies: string | undefined,
  path: string,
  secure: boolean,
): Flash | undefined => {
  const named = cookieNameOf(name, secure);
  const [, value] = new RegExp(`(?:^|; )${named}=([\\w-]+)`).exec(cookies ?? '') ?? [];
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

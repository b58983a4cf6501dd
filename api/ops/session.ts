// What a browser holds after the login of the ops console: a signed, dated word about who logged in; nothing is stored.
import { hmacHex } from '../../lib/kernel/secrets.ts';

export type OpsSession = { actor: string; until: number };

/** A working day and a little: afterwards the token is asked for again. */
export const sessionMs = 12 * 60 * 60 * 1000;

const keyOf = (token: string, purpose: string): Buffer =>
  Buffer.from(hmacHex(Buffer.from(token), `tessera ops ${purpose}`), 'hex');

const sign = (token: string, purpose: string, text: string): string =>
  hmacHex(keyOf(token, purpose), text);

/** The value of the cookie; another token makes all of them worthless. */
export const makeSession = (token: string, actor: string, now: number): string => {
  const until = now + sessionMs;
  const said = `${Buffer.from(actor).toString('base64url')}.${until}`;
  return `${said}.${sign(token, 'session', said)}`;
};

/** Reads a cookie; undefined when it is not ours or over. `equal` compares in constant time. */
export const readSession = (
  token: string,
  cookie: string,
  given: { now: number; equal(left: string, right: string): boolean },
): OpsSession | undefined => {
  const [actor = '', until = '', signature = ''] = cookie.split('.');
  if (!given.equal(signature, sign(token, 'session', `${actor}.${until}`))) return undefined;
  const session = {
    actor: Buffer.from(actor, 'base64url').toString('utf8'),
    until: Number(until),
  };
  return session.until > given.now ? session : undefined;
};

/** The word a write from the browser must carry beside the cookie: another site can send the one, but not read the other. */
export const csrfOf = (token: string, cookie: string): string => sign(token, 'csrf', cookie);

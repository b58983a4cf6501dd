// The texts of session tokens: 256 bits each, kept only as SHA-256.
import { createHash } from 'node:crypto';
import { randomToken } from '../kernel/secrets.ts';

export type TokenPair = { access: string; refresh: string };

const bytes = 32;

export const newTokenPair = (): TokenPair => ({
  access: `sess_${randomToken(bytes)}`,
  refresh: `rt_${randomToken(bytes)}`,
});

const pattern = { access: /^sess_[\w-]{43}$/, refresh: /^rt_[\w-]{43}$/ };

/** Whether a text can be such a token; anything else is refused without a look-up. */
export const isToken = (kind: keyof TokenPair, text: string): boolean => pattern[kind].test(text);

/** What is stored of a token; a plain hash is enough above 112 bits (OWASP ASVS 11.5.1). */
export const tokenHash = (text: string): Buffer => createHash('sha256').update(text).digest();

// API keys: their text, the checksum that lets junk be refused without a look-up, and who a key speaks for.
import { createHash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Account } from '../accounts/rules.ts';
import type { Mode } from '../messages/rules.ts';

/** Who makes a request with an API key. */
export type Principal = {
  accountId: string;
  keyId: string;
  mode: Mode;
  account: Account;
  /** The key was rotated and works only for its grace. */
  ends?: boolean;
};

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomLength = 32;
const checksumLength = 6;
const pattern = /^sk_(live|test)_tsr_[0-9A-Za-z]{38}$/;

// The vendor part keeps secret scanners from taking the key for another company's.
const keyPrefix = (mode: Mode): string => `sk_${mode}_tsr_`;

const base62 = (value: number, length: number): string => {
  let rest = value;
  let text = '';
  for (let digit = 0; digit < length; digit++) {
    text = (alphabet[rest % alphabet.length] ?? '') + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
};

const checksum = (text: string): string => base62(crc32(text), checksumLength);

/** A fresh key: 190 bits of randomness and six digits of CRC32, as GitHub's tokens have it. */
export const newKeyText = (mode: Mode): string => {
  const random = Array.from({ length: randomLength }, () => alphabet[randomInt(alphabet.length)]);
  const body = keyPrefix(mode) + random.join('');
  return body + checksum(body);
};

/** Whether a text can be one of our keys; a mistyped one fails here, without any look-up. */
export const isKeyText = (text: string): boolean =>
  pattern.test(text) && checksum(text.slice(0, -checksumLength)) === text.slice(-checksumLength);

/** RFC 6750 section 2.1: the scheme, spaces, one token and nothing behind it. */
const bearer = /^bearer +(\S+)$/i;

/** The token of an Authorization header; empty when there is none. */
export const bearerOf = (authorization: string | undefined): string =>
  bearer.exec(authorization ?? '')?.[1] ?? '';

/** What is stored of a key; a plain hash is enough above 112 bits (OWASP ASVS 11.5.1). */
export const keyHash = (text: string): Buffer => createHash('sha256').update(text).digest();

export const keyFacts = (text: string, mode: Mode) => ({
  prefix: keyPrefix(mode),
  last4: text.slice(-4),
});

export type KeyRecord = {
  id: string;
  accountId: string;
  name: string;
  mode: Mode;
  prefix: string;
  last4: string;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  /** The first key of a line of rotations. */
  familyId: string;
  /** The key that made it, by creating or rotating, or was shown it first; null: a session did, or signing up. */
  madeByKey: string | null;
  lastUsedAt: number | null;
};

/** The keys that a key made, those that these made, and so on; without the key itself. */
export const descendantsOf = (
  keys: readonly Pick<KeyRecord, 'id' | 'madeByKey'>[],
  id: string,
): ReadonlySet<string> => {
  const madeBy = Map.groupBy(keys, ({ madeByKey }) => madeByKey);
  const found = new Set<string>();
  const open = [id];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const child of madeBy.get(next) ?? []) {
      if (child.id === id || found.has(child.id)) continue;
      found.add(child.id);
      open.push(child.id);
    }
  }
  return found;
};

/** Whether a key may be used at `now` (ms). */
export const isUsable = (key: Pick<KeyRecord, 'expiresAt' | 'revokedAt'>, now: number): boolean =>
  key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);

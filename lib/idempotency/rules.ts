// Idempotency-Key: what a key may look like, where it belongs, and what makes two requests the same.
import { createHash, createHmac } from 'node:crypto';

export type KeyScope = { accountId: string; mode: 'live' | 'test'; key: string };

// The IETF draft writes the value as a quoted string, most clients send it bare: both mean the same key.
const quoted = /^"(.*)"$/;
const visible = /^[\x21-\x7e]{1,255}$/;

/** The key in a header value (one pair of double quotes removed), or undefined unless 1-255 visible ASCII characters. */
export const parseIdempotencyKey = (header: string): string | undefined => {
  const key = quoted.exec(header)?.[1] ?? header;
  return visible.test(key) ? key : undefined;
};

/** SHA-256 (hex) of account, mode and key: the name of the record in Redis and of its second line in MySQL. */
export const idempotencyKeyHash = ({ accountId, mode, key }: KeyScope): string =>
  createHash('sha256').update(`${accountId}\n${mode}\n${key}`).digest('hex');

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, sorted(member)]));
};

/** JSON with the members of every object in order of their names; undefined members are left out. */
export const canonicalJson = (value: unknown): string => JSON.stringify(sorted(value)) ?? 'null';

export type FingerprintInput = {
  /** The Idempotency-Key itself. */
  key: string;
  method: string;
  /** The route template, not the path. */
  route: string;
  /** The validated, normalised body. */
  body: unknown;
};

/**
 * SHA-256 (hex) over method, route and body, whatever the order of members. Keyed by the Idempotency-Key, which is
 * stored nowhere: a bare hash of a deliver would give its six-digit code away to whoever reads Redis.
 */
export const requestFingerprint = ({ key, method, route, body }: FingerprintInput): string =>
  createHmac('sha256', key)
    .update(`${method.toUpperCase()}\n${route}\n${canonicalJson(body)}`)
    .digest('hex');

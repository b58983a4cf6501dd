// Signatures as Standard Webhooks 1.0.0 has them: id, time and body, by every secret that counts.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

const prefix = 'whsec_';

/** A key that signs, from its text (whsec_…). */
export const signingKey = (secret: string): KeyObject =>
  createSecretKey(Buffer.from(secret.slice(prefix.length), 'base64'));

const signature = (key: KeyObject, signed: string): string =>
  `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;

/** The headers of one attempt; `at` in ms is the time of the attempt, not of the event. */
export const signedHeaders = (given: {
  id: string;
  at: number;
  body: string;
  keys: readonly KeyObject[];
}): Record<string, string> => {
  const { id, at, body, keys } = given;
  const timestamp = String(Math.floor(at / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': keys.map((key) => signature(key, signed)).join(' '),
  };
};

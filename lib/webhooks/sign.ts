// Signatures as Standard Webhooks 1.0.0 has them: id, time and body, by every secret that counts.
import { createHmac } from 'node:crypto';

const prefix = 'whsec_';

const signature = (secret: string, signed: string): string => {
  const key = Buffer.from(secret.slice(prefix.length), 'base64');
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
};

/** The headers of one attempt; `at` in ms is the time of the attempt, not of the event. */
export const signedHeaders = (given: {
  id: string;
  at: number;
  body: string;
  secrets: readonly string[];
}): Record<string, string> => {
  const { id, at, body, secrets } = given;
  const timestamp = String(Math.floor(at / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => signature(secret, signed)).join(' '),
  };
};

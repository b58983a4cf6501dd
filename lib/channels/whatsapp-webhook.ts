// WhatsApp's webhooks: their signature, and the receipts inside (reference 02 section 4).
import { createHmac } from 'node:crypto';
import { equalInConstantTime } from '../kernel/secrets.ts';
import { child, parseObject } from './channel.ts';

export type WhatsappReceipt = {
  echo: string;
  status: 'sent' | 'delivered' | 'read' | 'failed';
  /** Milliseconds; the provider's clock, in whole seconds. */
  at: number;
  errorCode: number | null;
};

/** Whether `signature` (the X-Hub-Signature-256 header) is the app secret's HMAC over the raw body. */
export const isSignedByMeta = (body: Buffer, signature: string, appSecret: string): boolean => {
  const expected = createHmac('sha256', appSecret).update(body).digest('hex');
  return appSecret !== '' && equalInConstantTime(signature, `sha256=${expected}`);
};

type Json = Record<string, unknown>;

const objects = (value: unknown): Json[] =>
  Array.isArray(value)
    ? value.filter((item): item is Json => typeof item === 'object' && item !== null)
    : [];

const statuses = ['sent', 'delivered', 'read', 'failed'] as const;

/** Later than any message, and far inside what a number holds exactly once it is milliseconds. */
const lastSecond = 100_000_000_000;

/** Unix seconds as Meta writes them, in text; undefined for anything that can be no time. */
const readSeconds = (value: unknown): number | undefined => {
  const seconds = typeof value === 'string' || typeof value === 'number' ? Number(value) : -1;
  return Number.isInteger(seconds) && seconds > 0 && seconds < lastSecond ? seconds : undefined;
};

const readReceipt = (entry: Json): WhatsappReceipt | undefined => {
  const status = statuses.find((candidate) => candidate === entry.status);
  const echo = entry.biz_opaque_callback_data;
  const seconds = readSeconds(entry.timestamp);
  if (!status || typeof echo !== 'string' || seconds === undefined) return undefined;
  const [error] = objects(entry.errors);
  return {
    echo,
    status,
    at: seconds * 1000,
    errorCode: Number.isSafeInteger(error?.code) ? (error?.code as number) : null,
  };
};

/**
 * The receipts of our messages in a webhook body; undefined when the body is not JSON. Whatever else is in there
 * (other fields, other senders' messages, news of a later API version) is passed over, as Meta asks of receivers.
 */
export const readReceipts = (body: Buffer): WhatsappReceipt[] | undefined => {
  const root = parseObject(body.toString('utf8'));
  if (!root) return undefined;
  return objects(root.entry)
    .flatMap((entry) => objects(entry.changes))
    .filter((change) => change.field === 'messages')
    .flatMap((change) => objects(child(change, 'value')?.statuses))
    .map(readReceipt)
    .filter((receipt) => receipt !== undefined);
};

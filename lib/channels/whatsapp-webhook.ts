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

/** What a webhook says of a business account rather than of a message; `at` in ms. */
export type AccountNews = {
  kind: 'template' | 'number' | 'account';
  wabaId: string;
  at: number;
  event: string;
  template: { name: string; language: string } | null;
  banState: string | null;
};

const newsKinds: Record<string, AccountNews['kind']> = {
  message_template_status_update: 'template',
  phone_number_quality_update: 'number',
  account_update: 'account',
};

const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length > 0 && value.length <= 512 ? value : null;

const readTemplate = (value: Json | undefined): AccountNews['template'] => {
  const name = textOf(value?.message_template_name);
  const language = textOf(value?.message_template_language);
  return name !== null && language !== null ? { name, language } : null;
};

const readNewsOf = (entry: Json, change: Json, now: number): AccountNews | undefined => {
  const kind = Object.hasOwn(newsKinds, String(change.field))
    ? newsKinds[String(change.field)]
    : undefined;
  const value = child(change, 'value');
  // News of partners names the business in the entry and the account inside.
  const wabaId = textOf(child(value, 'waba_info')?.waba_id) ?? textOf(entry.id);
  const event = textOf(value?.event);
  const template = readTemplate(value);
  if (!kind || wabaId === null || event === null) return undefined;
  if (kind === 'template' && template === null) return undefined;
  const seconds = readSeconds(entry.time);
  const at = seconds === undefined ? now : seconds * 1000;
  const banState = textOf(child(value, 'ban_info')?.waba_ban_state);
  return { kind, wabaId, at, event, template, banState };
};

/** The news of business accounts in a webhook body, in its order; `now` (ms) stands in where no time is given. */
export const readNews = (body: Buffer, now: number): AccountNews[] =>
  objects(parseObject(body.toString('utf8'))?.entry).flatMap((entry) =>
    objects(entry.changes)
      .map((change) => readNewsOf(entry, change, now))
      .filter((news) => news !== undefined),
  );

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

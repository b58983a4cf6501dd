// The job catalogue: every job's queue, payload, retry ladder and limits; topology and checks are read off it.
import type Joi from 'joi';
import {
  flag,
  type Infer,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  record,
  type Schema,
  text,
} from './kernel/schema.ts';

/** What a line of the log says of a job. */
export type JobFacts = {
  account_id?: string;
  mode?: string;
  phone?: string;
  /** Kind of what the job is about. */
  type?: string;
  /** How many of them. */
  count?: number;
};

export type Job<P = unknown> = {
  /** Also the name of the queue for fresh work. */
  name: string;
  payload: Schema<P> & Joi.ObjectSchema;
  /** Seconds before attempts 2, 3, …; after the last one the job is dead. */
  retrySeconds: readonly number[];
  /** Fresh jobs the queue holds; above it the publisher is refused. */
  maxLength: number;
  /** Unacknowledged jobs one worker holds. */
  prefetch: number;
  /** Bytes of payloads that are worked on at once; what else it holds waits unread. Without it, all of them are. */
  bytesAtOnce?: number;
  /** What the log says of a payload: nothing secret, and the phone only for those who mask it. */
  about?(payload: P): JobFacts;
  /** Event types (routing keys of the exchange `events`) that become this job. */
  bindings: readonly string[];
};

const job = <S extends Joi.ObjectSchema>(
  name: string,
  payload: S,
  rest: Omit<Job<Infer<S>>, 'name' | 'payload'>,
): Job<Infer<S>> => ({ name, payload: payload as Job<Infer<S>>['payload'], ...rest });

const id = () => text().guid();
const time = () => integer().min(0);

/** What was fixed about a message when it was admitted; it travels with every job and event about it. */
export const messageSchema = object({
  id: id(),
  account_id: id(),
  mode: oneOf('live', 'test'),
  origin: oneOf('send', 'deliver'),
  phone: text(),
  country: text().length(2),
  request_id: text(),
  plan: oneOf('trial', 'pay_per_success', 'per_message'),
  price_micros: integer().min(0),
  /** Hash of the caller's Idempotency-Key: MySQL keeps it unique when Redis forgot. */
  idempotency_hash: nullable(text().hex()),
});

const channel = () => oneOf('whatsapp', 'telegram');

/** What is known of one channel's part in a message; times are ms. */
const legSchema = object({
  channel: channel(),
  queued_at: nullable(time()),
  attempt: nullable(integer()),
  claimed_at: nullable(time()),
  answered_at: nullable(time()),
  /** `accepted`, or the reason why not; null while the leg goes on. */
  answer: nullable(text()),
});

const sendPayload = object({
  message: messageSchema,
  sealed_code: text(),
  /** Channels that were tried before this one, and why the first of them failed. */
  tried: list(channel()),
  reason: nullable(text()),
  /** Whether WhatsApp is known to reach the phone; null when nobody knows. */
  reachable: nullable(flag()),
  /** Set when the caller has its answer already: a fallback in the background. */
  late: flag(),
  /** Set when it was admitted for the account's own number: no rule of the shared one was asked. */
  own: optional(flag()),
  /** The channels' parts so far, for the message's timeline. */
  legs: optional(list(legSchema)),
});

const eventSchema = object({
  id: text().hex().length(32),
  type: text(),
  at: time(),
  account_id: id(),
  mode: oneOf('live', 'test'),
  message: nullable(messageSchema),
  request_id: text(),
  /** What the type says more; each type's own fields. */
  data: record(),
  /** Where the process that waits for the effect of this event is reached. */
  waiter: optional(text()),
});

const eventsPayload = object({ events: list(eventSchema).min(1) });

const receiptSchema = object({
  message_id: id(),
  recipient_key: text().hex(),
  status: oneOf('sent', 'delivered', 'read', 'failed'),
  at: time(),
  error_code: nullable(integer()),
});

/** What WhatsApp says of a business account rather than of a message. */
const newsSchema = object({
  kind: oneOf('template', 'number', 'account'),
  waba_id: text(),
  at: time(),
  /** The provider's word for what happened. */
  event: text(),
  template: nullable(object({ name: text(), language: text() })),
  ban_state: nullable(text()),
});

/** WhatsApp's receipts, or messages whose time has come (no receipt in time, or end of life). */
const statusPayload = object({
  receipts: list(receiptSchema),
  due: list(id()),
  news: optional(list(newsSchema)),
});

const updatePayload = object({
  update_id: integer(),
  chat_id: integer(),
  user_id: integer(),
  kind: oneOf('start', 'contact', 'blocked', 'unblocked', 'other'),
  /** The payload of /start, hashed as links are kept. */
  token_hash: nullable(text().hex()),
  contact: nullable(object({ phone: text(), user_id: nullable(integer()), forwarded: flag() })),
  language: nullable(text()),
});

const aboutSend = ({ message }: Infer<typeof sendPayload>): JobFacts => {
  const { account_id, mode, phone } = message;
  return { account_id, mode, phone };
};

/** Events travel together: an account is named only where all of them are about one. */
const aboutEvents = ({ events }: Infer<typeof eventsPayload>): JobFacts => {
  const [first] = events;
  if (first === undefined) return { count: 0 };
  const { type, account_id, mode } = first;
  const one = events.length === 1 ? { account_id, mode } : {};
  return { type, count: events.length, ...one };
};

const aboutStatus = ({ receipts, due, news = [] }: Infer<typeof statusPayload>): JobFacts => ({
  type: news.length > 0 ? 'news' : receipts.length > 0 ? 'receipts' : 'due',
  count: receipts.length + due.length + news.length,
});

const patient = [1, 5, 30, 120, 600] as const;

export const whatsappSend = job('whatsapp.send', sendPayload, {
  about: aboutSend,
  retrySeconds: [1, 3],
  maxLength: 50_000,
  prefetch: 200,
  bindings: [],
});
export const whatsappStatus = job('whatsapp.status', statusPayload, {
  about: aboutStatus,
  retrySeconds: patient,
  maxLength: 200_000,
  prefetch: 50,
  bindings: [],
});
export const telegramSend = job('telegram.send', sendPayload, {
  about: aboutSend,
  // The longest is for what Telegram asks to wait, within the life of a code.
  retrySeconds: [1, 3, 10, 30, 120],
  maxLength: 50_000,
  prefetch: 100,
  bindings: [],
});
export const telegramUpdate = job('telegram.update', updatePayload, {
  about: ({ kind }) => ({ type: kind }),
  retrySeconds: patient,
  maxLength: 50_000,
  prefetch: 20,
  bindings: [],
});
export const webhookDispatch = job('webhook.dispatch', eventsPayload, {
  about: aboutEvents,
  retrySeconds: patient,
  maxLength: 200_000,
  // A job holds one event or a hundred, and each becomes a row or two: what is worked on is counted by its size.
  prefetch: 100,
  bytesAtOnce: 128 * 1024,
  bindings: ['#'],
});
export const billingCharge = job('billing.charge', eventsPayload, {
  about: aboutEvents,
  retrySeconds: patient,
  maxLength: 200_000,
  prefetch: 200,
  // What per_message accounts pay for is published straight to the queue: most sends cost nothing yet.
  bindings: ['otp.verified', 'otp.failed', 'totp.verified'],
});
export const analyticsRollup = job('analytics.rollup', eventsPayload, {
  about: aboutEvents,
  retrySeconds: patient,
  maxLength: 200_000,
  prefetch: 50,
  bindings: ['otp.*', 'telegram.*'],
});

/** All jobs, in the order of design section 3. */
export const jobs: readonly Job[] = [
  whatsappSend,
  whatsappStatus,
  telegramSend,
  telegramUpdate,
  webhookDispatch,
  billingCharge,
  analyticsRollup,
] as readonly Job[];

export type MessageWire = Infer<typeof messageSchema>;
export type LegWire = Infer<typeof legSchema>;
export type SendJob = Infer<typeof sendPayload>;
export type EventWire = Infer<typeof eventSchema>;
export type Receipt = Infer<typeof receiptSchema>;
export type WhatsappNews = Infer<typeof newsSchema>;
export type StatusJob = Infer<typeof statusPayload>;
export type TelegramUpdate = Infer<typeof updatePayload>;

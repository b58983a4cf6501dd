// A job as a message: what is in its properties and headers, and what a handler is told of them.
import type { ConsumeMessage, Options } from 'amqplib';
import { isDeadQueue } from './topology.ts';

export type PublishOptions = {
  messageId: string;
  requestId?: string;
  replyTo?: string;
  correlationId?: string;
  /** Milliseconds since the epoch; afterwards nobody waits for the job. */
  deadlineMs?: number;
  /** W3C traceparent of the span the job was published in. */
  traceparent?: string | undefined;
};

/** What a handler knows about its job beyond the payload. `attempt` counts from 1. */
export type Meta = {
  messageId: string;
  requestId: string | undefined;
  replyTo: string | undefined;
  correlationId: string | undefined;
  deadlineMs: number | undefined;
  traceparent: string | undefined;
  attempt: number;
  lastAttempt: boolean;
  redelivered: boolean;
  firstPublishedAtMs: number;
  firstError: string | undefined;
  firstFailedAt: number | undefined;
};

export type Outcome =
  | { kind: 'done' }
  | { kind: 'retry'; reason: string; afterSeconds?: number }
  | { kind: 'dead'; reason: string };

export type Handler<P> = (payload: P, meta: Meta) => Promise<Outcome>;

type Headers = Record<string, string | number>;

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined;

type Address = { replyTo?: string | undefined; correlationId?: string | undefined };

const propertiesOf = (
  messageId: string,
  { replyTo, correlationId }: Address,
  headers: Headers,
): Options.Publish => {
  const properties: Options.Publish = {
    persistent: true,
    contentType: 'application/json',
    messageId,
    headers,
  };
  if (replyTo !== undefined) properties.replyTo = replyTo;
  if (correlationId !== undefined) properties.correlationId = correlationId;
  return properties;
};

/** Properties of a job published for the first time. */
export const freshProperties = (options: PublishOptions, now: number): Options.Publish => {
  const headers: Headers = { attempt: 1, first_published: now };
  if (options.requestId !== undefined) headers.request_id = options.requestId;
  if (options.deadlineMs !== undefined) headers.deadline = options.deadlineMs;
  if (options.traceparent !== undefined) headers.traceparent = options.traceparent;
  return propertiesOf(options.messageId, options, headers);
};

/** Whether the job comes straight from its dead queue; the newest of the broker's records stands first. */
const isRedriven = (headers: Record<string, unknown>): boolean => {
  const [last] = Array.isArray(headers['x-death']) ? (headers['x-death'] as unknown[]) : [];
  const { reason, queue } = (last ?? {}) as Record<string, unknown>;
  return reason === 'rejected' && isDeadQueue(String(queue));
};

/** What the message says of itself; `attempts` is how many the job has. */
export const readMeta = (message: ConsumeMessage, attempts: number): Meta => {
  const { properties, fields } = message;
  const headers = (properties.headers ?? {}) as Record<string, unknown>;
  // Redriven: the ladder begins anew. The deadline stays: what was given up is not sent later.
  const attempt = isRedriven(headers) ? 1 : (numberOf(headers.attempt) ?? 1);
  return {
    messageId: textOf(properties.messageId) ?? '',
    requestId: textOf(headers.request_id),
    replyTo: textOf(properties.replyTo),
    correlationId: textOf(properties.correlationId),
    deadlineMs: numberOf(headers.deadline),
    traceparent: textOf(headers.traceparent),
    attempt,
    lastAttempt: attempt >= attempts,
    redelivered: fields.redelivered,
    firstPublishedAtMs: numberOf(headers.first_published) ?? 0,
    firstError: textOf(headers.first_error),
    firstFailedAt: numberOf(headers.first_failed_at),
  };
};

export type Failure = {
  reason: string;
  detail: string;
  /** The queue the job was taken from. */
  queue: string;
  /** The attempt that comes next, or the last one that was made. */
  attempt: number;
};

/** Properties of a job that goes to the ladder or to its dead queue: only headers of ours are carried on. */
export const failedProperties = (meta: Meta, failure: Failure, now: number): Options.Publish => {
  const headers: Headers = {
    attempt: failure.attempt,
    first_published: meta.firstPublishedAtMs,
    reason: failure.reason,
    first_error: meta.firstError ?? failure.detail,
    last_error: failure.detail,
    first_failed_at: meta.firstFailedAt ?? now,
    failed_at: now,
    queue: failure.queue,
  };
  if (meta.requestId !== undefined) headers.request_id = meta.requestId;
  if (meta.deadlineMs !== undefined) headers.deadline = meta.deadlineMs;
  if (meta.traceparent !== undefined) headers.traceparent = meta.traceparent;
  return propertiesOf(meta.messageId, meta, headers);
};

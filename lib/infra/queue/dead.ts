// What a message in a dead queue says about its end, whether a worker of ours put it there or the broker.

export type DeadLetter = {
  /** Ours, or the broker's: `delivery_limit` for a job that was taken too often without an end. */
  reason: string;
  /** The last attempt that was made, from 1. */
  attempts: number;
  firstError: string | undefined;
  lastError: string | undefined;
  firstPublishedAtMs: number | undefined;
  firstFailedAtMs: number | undefined;
  /** To the second when the broker tells it. */
  deadAtMs: number | undefined;
  /** The queue it was taken from. */
  queue: string | undefined;
  requestId: string | undefined;
  /** Whether the broker moved it, without a worker's word. */
  byBroker: boolean;
};

type Fields = Record<string, unknown>;

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' ? value : undefined;
const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

/**
 * The broker's own record of a death, the newest first. The ladder leaves one too (`expired`), which is no end; a
 * dead letter of ours has none, because it is published anew.
 */
const brokersDeath = (headers: Fields): Fields | undefined => {
  const deaths = Array.isArray(headers['x-death']) ? headers['x-death'].map(fieldsOf) : [];
  return deaths.find(({ reason }) => reason !== 'expired');
};

/** Milliseconds of an AMQP timestamp, which counts seconds. */
const timestampMs = (value: unknown): number | undefined => {
  const seconds = numberOf(fieldsOf(value).value);
  return seconds === undefined ? undefined : seconds * 1000;
};

/** Reads the headers of a dead letter. */
export const readDead = (headers: Fields | undefined): DeadLetter => {
  const own = headers ?? {};
  const death = brokersDeath(own);
  return {
    reason: textOf(death ? death.reason : own.reason) ?? 'unknown',
    attempts: numberOf(own.attempt) ?? 1,
    firstError: textOf(own.first_error),
    lastError: textOf(own.last_error),
    firstPublishedAtMs: numberOf(own.first_published),
    firstFailedAtMs: numberOf(own.first_failed_at),
    deadAtMs: death ? timestampMs(death.time) : numberOf(own.failed_at),
    queue: textOf(death ? death.queue : own.queue),
    requestId: textOf(own.request_id),
    byBroker: death !== undefined,
  };
};

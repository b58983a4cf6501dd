// What follows a handler: nothing, another attempt on the ladder, or the dead queue with the reason.
import { setTimeout as pause } from 'node:timers/promises';
import type { ConsumeMessage, Options } from 'amqplib';
import type Joi from 'joi';
import type { Job } from '../../jobs.ts';
import type { Clock } from '../../kernel/clock.ts';
import { compileFits } from '../../kernel/fits.ts';
import type { Log } from '../../kernel/log.ts';
import { describeError, redact } from '../../kernel/redact.ts';
import { BrokerUnavailable, OutcomeUnknown, QueueFull } from './errors.ts';
import { failedProperties, type Handler, type Meta, type Outcome } from './message.ts';
import type { Publisher } from './publisher.ts';
import { waitQueue } from './topology.ts';

export type SettlementDeps = {
  publisher: Pick<Publisher, 'send'>;
  clock: Clock;
  log: Log;
  /** Whether an error passes by itself: then the job waits and comes again, and no attempt is counted. */
  isOutage(error: unknown): boolean;
};

/** A delivery in hand. */
export type Received = {
  message: ConsumeMessage;
  meta: Meta;
  queue: string;
  /** Whether the delivery is still ours; otherwise the broker delivers it again. */
  held(): boolean;
};

/** An outcome, or an engine that is away. */
type Handled = Outcome | { kind: 'wait'; reason: string };

const maxReasonLength = 300;
const againAfterMs = 250;

/** The rung of the ladder that waits at least `seconds`, else the longest. */
export const rungFor = (ladder: readonly number[], seconds: number): number =>
  ladder.find((rung) => rung >= seconds) ?? ladder.at(-1) ?? 1;

/** Why a job that asks for another attempt gets none; undefined when it does. */
export const finalReason = (
  meta: Pick<Meta, 'deadlineMs' | 'lastAttempt'>,
  now: number,
): string | undefined => {
  if (meta.deadlineMs !== undefined && meta.deadlineMs <= now) return 'deadline_passed';
  return meta.lastAttempt ? 'attempts_exhausted' : undefined;
};

type Checks = { fits(value: unknown): boolean; strict: Joi.Schema };

const checks = new WeakMap<object, Checks>();

/** The payload's schema without conversion, and its quick form, made once per job. */
const checksOf = (payload: Joi.Schema): Checks => {
  const known = checks.get(payload) ?? {
    fits: compileFits(payload),
    strict: payload.prefs({ convert: false }),
  };
  checks.set(payload, known);
  return known;
};

/** A fault names no part of the payload: it may hold a code or a phone number. */
const decode = <P>(job: Job<P>, content: Buffer): { payload: P } | { fault: string } => {
  try {
    const value = JSON.parse(content.toString('utf8'));
    const { fits, strict } = checksOf(job.payload);
    if (fits(value)) return { payload: value };
    const checked = strict.validate(value);
    return checked.error ? { fault: 'not of the schema' } : { payload: checked.value as P };
  } catch {
    return { fault: 'not JSON' };
  }
};

const run = async <P>(
  deps: SettlementDeps,
  job: Job<P>,
  handle: Handler<P>,
  { payload, meta }: { payload: P; meta: Meta },
): Promise<Handled> => {
  try {
    const outcome = await handle(payload, meta);
    if (outcome.kind === 'done') return outcome;
    // A header must stay short, and free of whatever a reason may quote.
    return { ...outcome, reason: redact(outcome.reason).slice(0, maxReasonLength) };
  } catch (error) {
    const { messageId, attempt } = meta;
    const reason = describeError(error);
    deps.log.warn({ job: job.name, message_id: messageId, attempt, reason }, 'job failed');
    return { kind: deps.isOutage(error) ? 'wait' : 'retry', reason };
  }
};

const passes = (error: unknown): boolean =>
  error instanceof BrokerUnavailable ||
  error instanceof OutcomeUnknown ||
  error instanceof QueueFull;

/**
 * Publishes what became of a job, for as long as the delivery is ours: what the handler did is not done again just
 * because the broker takes nothing for a while.
 */
const record = async (
  { publisher }: SettlementDeps,
  { message, held }: Received,
  target: { exchange: string; key: string },
  properties: Options.Publish,
): Promise<void> => {
  const { exchange, key } = target;
  for (;;) {
    if (!held()) throw new BrokerUnavailable('the delivery is no longer ours');
    try {
      await publisher.send(exchange, key, message.content, { ...properties, mandatory: true });
      return;
    } catch (error) {
      if (!passes(error)) throw error;
      await pause(againAfterMs);
    }
  }
};

type Became = { outcome: Outcome['kind']; reason: string | undefined };

/** What became of a job; the payload is undefined when it could not be read. */
export type Settled = Became & { payload: unknown };

/** Handles one message and makes what follows durable; resolves with what became of it, then it may be acked. */
export const settle = async <P>(
  deps: SettlementDeps,
  job: Job<P>,
  handle: Handler<P>,
  received: Received,
): Promise<Settled> => {
  const { clock, log } = deps;
  const { message, meta, queue } = received;
  const { messageId, attempt } = meta;

  const bury = async (reason: string, detail: string): Promise<Became> => {
    const properties = failedProperties(meta, { reason, detail, queue, attempt }, clock.now());
    await record(deps, received, { exchange: 'dead', key: job.name }, properties);
    log.error({ job: job.name, message_id: messageId, attempt, reason, detail }, 'job is dead');
    return { outcome: 'dead', reason };
  };

  const climb = async (seconds: number, reason: string, nextAttempt: number): Promise<Became> => {
    const failure = { reason, detail: reason, queue, attempt: nextAttempt };
    const properties = failedProperties(meta, failure, clock.now());
    const key = waitQueue(job.name, rungFor(job.retrySeconds, seconds));
    await record(deps, received, { exchange: 'retry', key }, properties);
    return { outcome: 'retry', reason };
  };

  const decoded = decode(job, message.content);
  if ('fault' in decoded) {
    return { ...(await bury('malformed_payload', decoded.fault)), payload: undefined };
  }
  const { payload } = decoded;
  const outcome = await run(deps, job, handle, { payload, meta });
  const follow = async (): Promise<Became> => {
    if (outcome.kind === 'done') return { outcome: 'done', reason: undefined };
    if (outcome.kind === 'dead') return bury(outcome.reason, outcome.reason);
    if (outcome.kind === 'wait') return climb(1, outcome.reason, attempt);
    const final = finalReason(meta, clock.now());
    if (final) return bury(final, outcome.reason);
    const wanted = outcome.afterSeconds ?? job.retrySeconds[attempt - 1] ?? 1;
    return climb(wanted, outcome.reason, attempt + 1);
  };
  return { ...(await follow()), payload };
};

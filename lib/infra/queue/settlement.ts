// What follows a handler: nothing, another attempt on the ladder, or the dead queue with the reason.
import type { ConsumeMessage } from 'amqplib';
import type Joi from 'joi';
import type { Job } from '../../jobs.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';
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

/** An outcome, or an engine that is away. */
type Handled = Outcome | { kind: 'wait'; reason: string };

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

const strict = new WeakMap<object, Joi.Schema>();

/** The payload's schema without conversion, made once per job. */
const strictly = (payload: Joi.Schema): Joi.Schema => {
  const known = strict.get(payload) ?? payload.prefs({ convert: false });
  strict.set(payload, known);
  return known;
};

const decode = <P>(job: Job<P>, content: Buffer): { payload: P } | { fault: string } => {
  try {
    const checked = strictly(job.payload).validate(JSON.parse(content.toString('utf8')));
    return checked.error ? { fault: 'malformed_payload' } : { payload: checked.value as P };
  } catch {
    return { fault: 'malformed_json' };
  }
};

const outcomeOf = async <P>(
  deps: SettlementDeps,
  job: Job<P>,
  handle: Handler<P>,
  { message, meta }: { message: ConsumeMessage; meta: Meta },
): Promise<Handled> => {
  const decoded = decode(job, message.content);
  if ('fault' in decoded) return { kind: 'dead', reason: decoded.fault };
  try {
    return await handle(decoded.payload, meta);
  } catch (error) {
    const { messageId, attempt } = meta;
    const reason = describeError(error);
    deps.log.warn({ job: job.name, message_id: messageId, attempt, reason }, 'job failed');
    return { kind: deps.isOutage(error) ? 'wait' : 'retry', reason };
  }
};

/** Handles one message and makes what follows durable; resolves with what became of it, then it may be acked. */
export const settle = async <P>(
  deps: SettlementDeps,
  job: Job<P>,
  handle: Handler<P>,
  received: { message: ConsumeMessage; meta: Meta },
): Promise<Outcome['kind']> => {
  const { publisher, clock, log } = deps;
  const { message, meta } = received;
  const { messageId, attempt } = meta;

  const bury = async (reason: string, detail: string): Promise<'dead'> => {
    const failure = { reason, detail, queue: job.name, attempt };
    const properties = { ...failedProperties(meta, failure, clock.now()), mandatory: true };
    await publisher.send('dead', job.name, message.content, properties);
    log.error({ job: job.name, message_id: messageId, reason, detail }, 'job is dead');
    return 'dead';
  };

  const climb = async (seconds: number, reason: string, nextAttempt: number): Promise<'retry'> => {
    const failure = { reason, detail: reason, queue: job.name, attempt: nextAttempt };
    const properties = { ...failedProperties(meta, failure, clock.now()), mandatory: true };
    const rung = waitQueue(job.name, rungFor(job.retrySeconds, seconds));
    await publisher.send('retry', rung, message.content, properties);
    return 'retry';
  };

  const outcome = await outcomeOf(deps, job, handle, received);
  if (outcome.kind === 'done') return 'done';
  if (outcome.kind === 'dead') return bury(outcome.reason, outcome.reason);
  if (outcome.kind === 'wait') return climb(1, outcome.reason, attempt);
  const final = finalReason(meta, clock.now());
  if (final) return bury(final, outcome.reason);
  const wanted = outcome.afterSeconds ?? job.retrySeconds[attempt - 1] ?? 1;
  return climb(wanted, outcome.reason, attempt + 1);
};

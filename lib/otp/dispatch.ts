// The API half of a send: publish the job, wait for the worker, and turn a silence into a certainty.
import type { Broker } from '../infra/queue/broker.ts';
import { OutcomeUnknown } from '../infra/queue/errors.ts';
import { whatsappSend } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail, ServiceError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Sealer } from '../kernel/secrets.ts';
import { isUnknown, type Message } from '../messages/rules.ts';
import { toWire } from '../messages/wire.ts';
import type { LiveRef } from './live-message.ts';
import type { Outcome } from './rules.ts';
import { sealCode } from './sealed.ts';
import type { LiveStore } from './store.ts';

export type DispatchDeps = {
  broker: Pick<Broker, 'publish' | 'expectReplies' | 'ready' | 'replyAddress'>;
  live: LiveStore;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  sendDeadlineMs: number;
  reachabilityWindowMs: number;
  /** How long a call that a worker has begun may still take. */
  callMs: number;
};

/** What is sent: the message, where it lives and its code. */
export type Sending = {
  message: Message;
  ref: LiveRef;
  code: string;
  /** Whether WhatsApp is known to reach the phone; null when nobody knows. */
  reachable: boolean | null;
  /** Admitted for the account's own number. */
  own: boolean;
};

type Replies = ReturnType<Broker['expectReplies']>;

const retrySeconds = 5;
const lookMs = 250;

const unavailable = (cause: unknown) =>
  fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds }, { cause });

const acceptedOutcome = async (deps: DispatchDeps, ref: LiveRef): Promise<Outcome | undefined> => {
  const facts = (await deps.live.find(ref))?.facts;
  if (!facts?.channel || facts.acceptedAt === null || facts.expiresAt === null) return undefined;
  if (facts.failedAt !== null) return undefined;
  const { channel, acceptedAt, expiresAt } = facts;
  return { kind: 'accepted', channel, acceptedAt, expiresAt, hold: false };
};

/** A worker is calling a channel right now: its word is awaited as long as such a call can take. */
const awaitCall = async (deps: DispatchDeps, ref: LiveRef, replies: Replies): Promise<Outcome> => {
  const until = deps.clock.now() + deps.callMs;
  while (deps.clock.now() < until) {
    const reply = (await replies.next(lookMs)) as Outcome | undefined;
    const outcome = reply ?? (await acceptedOutcome(deps, ref));
    if (outcome) return outcome;
  }
  // Nobody can say whether it was sent: that is no DELIVERY_FAILED, which promises that nothing was.
  throw fail('INTERNAL_ERROR', {}, { cause: new Error('the outcome of the send is not known') });
};

/** Nobody answered: give the message up, and if that is too late, find out what became of it. */
const giveUp = async (deps: DispatchDeps, ref: LiveRef, replies: Replies): Promise<Outcome> => {
  const state = await deps.live.abandon(ref, deps.clock.now());
  if (state === 'abandoned') {
    return {
      kind: 'failed',
      reason: 'deadline',
      mayArrive: false,
      taken: false,
      unknown: false,
    };
  }
  if (isUnknown(state))
    return {
      kind: 'failed',
      reason: state,
      mayArrive: true,
      taken: false,
      unknown: true,
    };
  const accepted = state === 'accepted' ? await acceptedOutcome(deps, ref) : undefined;
  return accepted ?? awaitCall(deps, ref, replies);
};

/** A recipient of unknown reachability: the channel may still report a failure within the window. */
const awaitReceipt = async (
  deps: DispatchDeps,
  replies: Replies,
  accepted: Outcome,
): Promise<Outcome> => {
  const second = (await replies.next(deps.reachabilityWindowMs)) as Outcome | undefined;
  return second ?? accepted;
};

/** Publishes the job. Answers false when the broker did not say whether it has it. */
const publishSend = async (
  deps: DispatchDeps,
  { message, code, reachable, own }: Sending,
): Promise<boolean> => {
  const replyTo = deps.broker.replyAddress();
  if (replyTo === undefined) throw unavailable(new Error('no reply queue'));
  try {
    await deps.broker.publish(
      whatsappSend,
      {
        message: toWire(message),
        sealed_code: sealCode(deps.sealer, message.id, code),
        tried: [],
        reason: null,
        reachable,
        late: false,
        own,
      },
      {
        messageId: message.id,
        requestId: message.requestId,
        replyTo,
        correlationId: message.id,
        deadlineMs: deps.clock.now() + deps.sendDeadlineMs,
      },
    );
    return true;
  } catch (error) {
    // Refused, unroutable or not connected: nothing was queued.
    if (!(error instanceof OutcomeUnknown)) throw unavailable(error);
    return false;
  }
};

const converse = async (
  deps: DispatchDeps,
  ref: LiveRef,
  replies: Replies,
  published: boolean,
): Promise<Outcome> => {
  // The job may be in the queue or not; the claim closes the question at once.
  if (!published) {
    const outcome = await giveUp(deps, ref, replies);
    if (outcome.kind === 'failed' && !outcome.unknown)
      throw unavailable(new Error('the broker did not confirm'));
    return outcome;
  }
  const first = (await replies.next(deps.sendDeadlineMs)) as Outcome | undefined;
  if (!first) return giveUp(deps, ref, replies);
  return first.kind === 'accepted' && first.hold ? awaitReceipt(deps, replies, first) : first;
};

/** Once a job may be queued, an engine that is away leaves open what became of it. */
const unsure = (error: unknown): never => {
  throw error instanceof ServiceError ? error : fail('INTERNAL_ERROR', {}, { cause: error });
};

/**
 * Sends a code through the workers and answers what became of it.
 * @throws SERVICE_UNAVAILABLE when nothing was queued, INTERNAL_ERROR when nobody can say, RedisUnavailable
 */
export const dispatch = async (deps: DispatchDeps, sending: Sending): Promise<Outcome> => {
  const replies = deps.broker.expectReplies(sending.message.id);
  try {
    const published = await publishSend(deps, sending);
    return await converse(deps, sending.ref, replies, published).catch(unsure);
  } finally {
    replies.close();
  }
};

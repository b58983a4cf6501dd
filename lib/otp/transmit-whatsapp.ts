// The WhatsApp half of a send: claim the message, call the channel once, record what it said or move on.
import type { ChannelResult } from '../channels/channel.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import { type SendJob, whatsappStatus } from '../jobs.ts';
import { newId } from '../kernel/ids.ts';
import type { NamedKey, Sealer } from '../kernel/secrets.ts';
import { type CallDeps, type Called, callChannel } from './call-whatsapp.ts';
import { acceptSurely, awaitLeg } from './certainty.ts';
import {
  type Delivery,
  type DeliveryDeps,
  giveUp,
  handOver,
  moveOn,
  recordAccepted,
  recordGivenUp,
  tell,
} from './delivery.ts';
import { answerLeg, claimLeg } from './legs.ts';
import { codeMacs, failureOf } from './rules.ts';
import { openJob, type SealedCode } from './sealed.ts';
import type { ClaimDetails } from './store.ts';

export type WhatsappDeps = DeliveryDeps &
  CallDeps & {
    sealer: Sealer;
    peppers: readonly NamedKey[];
    /** How long an echo is waited for after a call without an answer, and whether failures are waited for at all. */
    echoWaitMs: number;
    /** How long one call to WhatsApp may take. */
    whatsappCallMs: number;
    reachabilityWindowMs: number;
  };

const done: JobOutcome = { kind: 'done' };

/** These name the recipient's own state; the other unreachable codes are about the sender's rights or a test setup. */
const notOnWhatsapp = new Set([131026]);

/** The channel has the message already: an echo said so, or an earlier run of this job. */
const resume = async (deps: WhatsappDeps, delivery: Delivery): Promise<JobOutcome> => {
  const live = await deps.live.find(delivery.ref);
  const { acceptedAt = null, expiresAt = null } = live?.facts ?? {};
  if (live?.whatsapp !== 'accepted' || acceptedAt === null || expiresAt === null) return done;
  await recordAccepted(deps, delivery, { channel: 'whatsapp', acceptedAt, expiresAt, hold: false });
  return done;
};

/** The call had no answer: the provider's echo may come within `forMs`. */
const onUnknown = async (
  deps: WhatsappDeps,
  delivery: Delivery,
  forMs: number,
): Promise<JobOutcome> => {
  const state = await awaitLeg(deps, delivery.ref, { channel: 'whatsapp', forMs });
  if (state === 'accepted') return resume(deps, delivery);
  // A receipt settled it: its own job goes on from there.
  if (state !== 'sending') return done;
  const reason = 'outcome_unknown';
  if (await deps.live.settleLeg('whatsapp', delivery.ref, 'failed', reason)) {
    await moveOn(deps, delivery, { channel: 'whatsapp', reason });
  }
  return done;
};

const onAccepted = async (
  deps: WhatsappDeps,
  delivery: Delivery,
  claimed: ClaimDetails,
): Promise<JobOutcome> => {
  const awaited = !claimed.reachable && !delivery.late && deps.reachabilityWindowMs > 0;
  const leg = { channel: 'whatsapp', hold: awaited, claimed } as const;
  const accepted = await acceptSurely(deps, delivery.ref, leg);
  if (!accepted) return done;
  await recordAccepted(deps, delivery, { channel: 'whatsapp', ...accepted });
  return done;
};

const mayRetry = (deps: WhatsappDeps, meta: Meta): boolean =>
  !meta.lastAttempt && (meta.deadlineMs === undefined || meta.deadlineMs > deps.clock.now());

const onRefused = async (
  deps: WhatsappDeps,
  delivery: Delivery,
  refused: Extract<ChannelResult, { kind: 'refused' }> & Omit<Called, 'result'> & { meta: Meta },
): Promise<JobOutcome> => {
  const { refusal, code, meta, own, paused } = refused;
  const { ref, message } = delivery;
  const passing = refusal === 'retry' || refusal === 'throttle';
  deps.log.info({ message_id: message.id, refusal, provider_code: code }, 'whatsapp refused');
  if (passing && mayRetry(deps, meta)) {
    await deps.live.settleLeg('whatsapp', ref, 'queued');
    return { kind: 'retry', reason: `whatsapp_${code}` };
  }
  if (notOnWhatsapp.has(code)) {
    await deps.live.learnReachable(deps.recipients.ofPhone(message.phone), false);
  }
  const failure =
    own && paused ? ({ reason: 'connection_paused' } as const) : failureOf(refusal, own);
  await deps.live.settleLeg('whatsapp', ref, 'failed', failure.reason);
  await moveOn(deps, delivery, { channel: 'whatsapp', ...failure });
  return done;
};

/** Claims the message and calls the channel; what an earlier run or somebody else did with it is respected. */
const transmit = async (
  deps: WhatsappDeps,
  delivery: Delivery,
  sealed: SealedCode,
  meta: Meta,
): Promise<JobOutcome> => {
  const { ref, message, sealedCode, waiter } = delivery;
  const code = sealed.open();
  const [mac] = codeMacs(deps.peppers, ref.recipient, code);
  if (!mac) throw new Error('no pepper');
  // The sandbox's recipients are always there: nobody waits for their receipts.
  const reachable = delivery.reachable === true || message.mode === 'test';
  const now = deps.clock.now();
  const details = { message, sealedCode, mac, waiter, reachable };
  const claim = await deps.live.claim('whatsapp', ref, now, details);
  // Verified meanwhile: the run that was told yes may have died before it wrote that down.
  if (claim === 'accepted' || claim === 'verified') return resume(deps, delivery);
  // Another run is in its call, or died there: its answer may still come, and then the echo.
  if (claim === 'sending') return onUnknown(deps, delivery, deps.whatsappCallMs + deps.echoWaitMs);
  if (claim === 'abandoned') {
    await recordGivenUp(deps, delivery);
    return done;
  }
  if (claim !== 'won') return moveOnFrom(deps, delivery, claim);
  const claimed = { ...delivery, legs: claimLeg(delivery.legs, now) };
  const { result, ...by } = await callChannel(deps, claimed, code);
  if (result.kind === 'unknown') return onUnknown(deps, claimed, deps.echoWaitMs);
  if (result.kind === 'refused') return onRefused(deps, claimed, { ...result, ...by, meta });
  await onAccepted(deps, claimed, details);
  if (message.mode === 'test') await sandboxReceipts(deps, delivery);
  return done;
};

/** The sandbox's recipient gets every message at once, and says so over the same road as a real one. */
const sandboxReceipts = async (deps: WhatsappDeps, { message, ref }: Delivery): Promise<void> => {
  const at = deps.clock.now();
  const receipt = { message_id: message.id, recipient_key: ref.recipient, at, error_code: null };
  const receipts = (['sent', 'delivered'] as const).map((status) => ({ ...receipt, status }));
  await deps.broker.publish(whatsappStatus, { receipts, due: [] }, { messageId: newId() });
};

/** An earlier run failed here and did not get to say so. */
const moveOnFrom = async (
  deps: WhatsappDeps,
  delivery: Delivery,
  claim: 'failed' | 'queued',
): Promise<JobOutcome> => {
  if (claim === 'failed') {
    const live = await deps.live.find(delivery.ref);
    const known = live?.lostWhatsapp ?? live?.facts.failureReason ?? delivery.reason;
    await moveOn(deps, delivery, { channel: 'whatsapp', reason: known ?? 'provider_error' });
  }
  return done;
};

const isPastDeadline = (deps: WhatsappDeps, meta: Meta): boolean =>
  meta.deadlineMs !== undefined && meta.deadlineMs <= deps.clock.now();

/** Answers the owner of the message's Idempotency-Key, if that is another message. */
const otherOwner = async (
  deps: WhatsappDeps,
  { message }: Delivery,
): Promise<string | undefined> => {
  const { idempotencyHash } = message;
  if (idempotencyHash === null) return undefined;
  const owner = await deps.reservations.reserve({ ...message, idempotencyHash });
  return owner === message.id ? undefined : owner;
};

/** Handles the job whatsapp.send. Errors it throws (Redis, MySQL or broker away) take the retry ladder. */
export const handleWhatsappSend = async (
  deps: WhatsappDeps,
  job: SendJob,
  meta: Meta,
): Promise<JobOutcome> => {
  const { delivery, sealed } = openJob(deps, 'whatsapp', job, meta);
  const { message, ref } = delivery;
  if (isPastDeadline(deps, meta) && (await giveUp(deps, delivery))) return done;
  const owner = await otherOwner(deps, delivery);
  if (owner !== undefined) {
    tell(deps, delivery.waiter, { kind: 'duplicate', messageId: owner });
    return done;
  }
  if (delivery.reachable === false && !delivery.tried.includes('telegram')) {
    const chat = await deps.links.chatOf(message, ref.recipient);
    if (chat !== undefined) {
      const { tried } = delivery;
      const reason = 'not_on_channel';
      const answer = { channel: 'whatsapp', answer: reason, at: deps.clock.now() } as const;
      const skipped = { ...delivery, legs: answerLeg(delivery.legs, answer) };
      await handOver(deps, skipped, { channel: 'telegram', tried, reason });
      return done;
    }
  }
  return transmit(deps, delivery, sealed, meta);
};

// What both channels' workers share: recording what became of a message, telling who waits, and moving on.
import type { Reservations } from '../idempotency/reservations.ts';
import type { Broker } from '../infra/queue/broker.ts';
import { billingCharge, type LegWire, type SendJob, telegramSend, whatsappSend } from '../jobs.ts';
import { type Clock, second } from '../kernel/clock.ts';
import { within } from '../kernel/in-time.ts';
import type { Log } from '../kernel/log.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { describeError } from '../kernel/redact.ts';
import type { LinkStore } from '../links/store.ts';
import type { Announcer } from '../messages/announce.ts';
import { messageEvent } from '../messages/events.ts';
import {
  type ChannelName,
  codeLifeSeconds,
  type Facts,
  type FailureReason,
  isUnknown,
  type Message,
  noFacts,
} from '../messages/rules.ts';
import type { MessageStore } from '../messages/store.ts';
import { toWire } from '../messages/wire.ts';
import { answerLeg } from './legs.ts';
import type { LiveRef, Waiter } from './live-message.ts';
import { errorOf, type Outcome, planChannels } from './rules.ts';
import { isSandboxLinked } from './sandbox.ts';
import type { LiveStore } from './store.ts';

export type DeliveryDeps = {
  broker: Pick<Broker, 'publish' | 'reply'>;
  live: LiveStore;
  links: LinkStore;
  messages: MessageStore;
  reservations: Reservations;
  announcer: Announcer;
  recipients: RecipientKeys;
  clock: Clock;
  log: Log;
};

/** A message on its way: what the job said about it, and who waits until when. */
export type Delivery = {
  message: Message;
  ref: LiveRef;
  sealedCode: string;
  tried: ChannelName[];
  reason: FailureReason | null;
  reachable: boolean | null;
  late: boolean;
  /** Admitted for the account's own number: it does not go out from the shared one. */
  own?: boolean;
  legs: LegWire[];
  waiter: Waiter | undefined;
  deadlineMs: number | undefined;
};

/** The caller's answer does not wait longer than this for MySQL: Redis holds the truth it is made of. */
const recordPatienceMs = 1_000;

/** Waits a moment for the row; one that is not written yet is said, and comes again with the job. */
const patiently = async (
  { log }: Pick<DeliveryDeps, 'log'>,
  message: Message,
  recorded: Promise<void>,
): Promise<void> => {
  recorded.catch((error: unknown) =>
    log.warn({ message_id: message.id, reason: describeError(error) }, 'message not recorded yet'),
  );
  await within(recordPatienceMs, recorded).catch(() => undefined);
};

export const tell = (
  deps: Pick<DeliveryDeps, 'broker'>,
  waiter: Waiter | undefined,
  outcome: Outcome,
): void => {
  if (waiter) deps.broker.reply(waiter, outcome);
};

/** Says that a channel took the message, and has it charged where that is what is paid for; its row is written. */
export const announceAccepted = async (
  deps: DeliveryDeps,
  message: Message,
  facts: Facts,
  legs: readonly LegWire[] = [],
): Promise<void> => {
  const at = facts.acceptedAt ?? deps.clock.now();
  const sent = messageEvent('otp.sent', message, at, { ...facts, legs });
  if (message.plan === 'per_message' && message.priceMicros > 0) {
    const named = { messageId: sent.id, requestId: message.requestId };
    await deps.broker.publish(billingCharge, { events: [sent] }, named);
  }
  await deps.announcer.announce(sent);
};

/**
 * A channel took the message: the row is written, whoever waits is told, the event goes out. Resolves when all of
 * it is durable, so that the job may be acknowledged.
 */
export const recordAccepted = async (
  deps: DeliveryDeps,
  delivery: Delivery,
  accepted: { channel: ChannelName; acceptedAt: number; expiresAt: number; hold: boolean },
): Promise<void> => {
  const { message, waiter } = delivery;
  const { channel, acceptedAt, expiresAt } = accepted;
  const deliveredAt = channel === 'telegram' ? acceptedAt : null;
  const facts: Facts = { ...noFacts, channel, acceptedAt, expiresAt, deliveredAt };
  const recorded = deps.messages.merge(message, facts, delivery.own);
  await patiently(deps, message, recorded);
  tell(deps, waiter, { kind: 'accepted', ...accepted });
  await recorded;
  const answer = { channel, answer: 'accepted', at: acceptedAt };
  await announceAccepted(deps, message, facts, answerLeg(delivery.legs, answer));
  if (deliveredAt !== null) {
    await deps.announcer.announce(messageEvent('otp.delivered', message, deliveredAt, facts));
  }
};

/** News of an arrival came first: whoever waits for the failure is told of that instead. */
const tellArrived = async (deps: DeliveryDeps, { ref, waiter }: Delivery): Promise<void> => {
  const facts = (await deps.live.find(ref))?.facts;
  if (!facts?.channel || facts.acceptedAt === null || facts.expiresAt === null) return;
  const { channel, acceptedAt, expiresAt } = facts;
  tell(deps, waiter, { kind: 'accepted', channel, acceptedAt, expiresAt, hold: false });
};

/**
 * No channel is left: the message failed. `voidCode` is false where the recipient may hold the code all the same
 * (no receipt in time), so that it still verifies.
 */
export const recordFailed = async (
  deps: DeliveryDeps,
  delivery: Delivery,
  failure: { reason: FailureReason; voidCode: boolean; retryAfterSeconds?: number },
): Promise<void> => {
  const { message, ref, waiter, legs } = delivery;
  const now = deps.clock.now();
  const reasons = [failure.reason, delivery.reason];
  const unknown = reasons.some(isUnknown);
  // The Bot API has no receipts that could bring the code to life later, so a recipient who has it may use it.
  const maybeHeld = reasons.includes('telegram_outcome_unknown');
  const code = maybeHeld ? 'valid' : failure.voidCode ? 'void' : 'kept';
  const failed = await deps.live.fail(ref, now, failure.reason, code);
  if (!failed) return tellArrived(deps, delivery);
  // A channel that has said no does not deliver it later: its code is void, and nothing will be charged.
  const codeOpen = unknown || code !== 'void';
  // A code that may be used although nobody knows that it was sent is looked after at its end.
  const expiresAt = code === 'valid' ? now + codeLifeSeconds * second : null;
  const facts: Facts = { ...noFacts, expiresAt, failedAt: now, failureReason: failure.reason };
  const recorded = deps.messages.merge(message, facts).then(async () => {
    // While nobody knows whether it was sent, its key stays with it.
    if (!unknown) await deps.reservations.release(message);
  });
  await patiently(deps, message, recorded);
  const { retryAfterSeconds } = failure;
  tell(deps, waiter, {
    kind: 'failed',
    reason: failure.reason,
    mayArrive: codeOpen,
    taken: failed.taken,
    unknown,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
  await recorded;
  const news = { ...facts, legs, codeOpen };
  await deps.announcer.announce(messageEvent('otp.failed', message, now, news));
};

/**
 * Nobody waits any more: nothing is sent, and the row says so. Redis forgets a message in the end and its row does not,
 * so a job that comes again later than that (from its dead queue, say) may be about one that was sent.
 */
export const recordGivenUp = async (
  deps: DeliveryDeps,
  delivery: Delivery,
  reason: FailureReason = 'deadline',
): Promise<void> => {
  const { accountId, id } = delivery.message;
  const facts = (await deps.messages.find(accountId, id))?.facts;
  if (facts == null || facts.acceptedAt === null) {
    // What an earlier channel left open stays open.
    const why = isUnknown(delivery.reason) ? delivery.reason : reason;
    return recordFailed(deps, delivery, { reason: why, voidCode: true });
  }
  await announceAccepted(deps, delivery.message, facts);
};

/** Whether the message is given up, now that its caller's deadline has passed; then the row says so too. */
export const giveUp = async (deps: DeliveryDeps, delivery: Delivery): Promise<boolean> => {
  const state = await deps.live.abandon(delivery.ref, deps.clock.now());
  if (state === 'accepted' || state === 'sending') return false;
  await recordGivenUp(deps, delivery, state === 'abandoned' ? 'deadline' : state);
  return true;
};

const isLinked = async (deps: DeliveryDeps, { message, ref }: Delivery): Promise<boolean> =>
  message.mode === 'test'
    ? isSandboxLinked(message.phone)
    : (await deps.links.chatOf(message, ref.recipient)) !== undefined;

const jobOf = { whatsapp: whatsappSend, telegram: telegramSend } as const;

/** Hands the message to another channel's worker, together with whoever waits for it. */
export const handOver = async (
  deps: DeliveryDeps,
  delivery: Delivery,
  to: { channel: ChannelName; tried: ChannelName[]; reason: FailureReason | null },
): Promise<void> => {
  const { message, sealedCode, reachable, late, legs, waiter, deadlineMs } = delivery;
  const payload: SendJob = {
    message: toWire(message),
    sealed_code: sealedCode,
    tried: to.tried,
    reason: to.reason,
    reachable,
    late,
    legs,
  };
  await deps.broker.publish(jobOf[to.channel], payload, {
    messageId: message.id,
    requestId: message.requestId,
    ...waiter,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
};

/**
 * `channel` could not deliver: the next one of the plan gets the message, or it failed. The reason that the first
 * channel gave is the one the caller hears, unless the fallback was there and failed by itself.
 */
export const moveOn = async (
  deps: DeliveryDeps,
  held: Delivery,
  from: {
    channel: ChannelName;
    reason: FailureReason;
    voidCode?: boolean;
    retryAfterSeconds?: number;
  },
): Promise<void> => {
  const { channel, reason: answer } = from;
  const legs = answerLeg(held.legs, { channel, answer, at: deps.clock.now() });
  const delivery = { ...held, legs };
  const tried = [...delivery.tried, from.channel];
  const ofFallback = errorOf(from.reason) === 'TELEGRAM_UNAVAILABLE';
  const reason = ofFallback ? from.reason : (delivery.reason ?? from.reason);
  const linked = !tried.includes('telegram') && (await isLinked(deps, delivery));
  const [next] = planChannels({ linked, reachable: undefined, tried });
  if (next !== undefined) return handOver(deps, delivery, { channel: next, tried, reason });
  return recordFailed(deps, delivery, {
    reason,
    voidCode: from.voidCode ?? true,
    ...(from.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: from.retryAfterSeconds }),
  });
};

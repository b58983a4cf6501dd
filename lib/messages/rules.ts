// What a message is: the facts known about it, and the state that follows from them.

export type Mode = 'live' | 'test';
export type Origin = 'send' | 'deliver';
export type ChannelName = 'whatsapp' | 'telegram';
export type MessageStatus = 'sent' | 'verified' | 'failed' | 'expired';
export type Plan = 'trial' | 'pay_per_success' | 'per_message';

/** Spec section 8 and design section 4: a code lives five minutes. */
export const codeLifeSeconds = 300;

/** Why a message failed, as customers read it in status, lists and webhooks. */
export const failureReasons = {
  not_on_channel: 'No channel can reach this recipient.',
  template_not_ready: 'The message template is not approved on the sending number.',
  sender_unavailable: 'The sending number cannot send at the moment.',
  connection_broken: 'The connected WhatsApp number of the account cannot send.',
  connection_paused: 'The connected WhatsApp number of the account is paused by the operators.',
  recipient_throttled: 'The channel received too many messages for this recipient.',
  provider_error: 'The channel failed.',
  telegram_unavailable: 'Telegram failed.',
  outcome_unknown: 'The channel never said whether it took the message: its code may still arrive.',
  telegram_outcome_unknown:
    'Telegram never said whether it took the message: its code can be used until it expires.',
  not_delivered:
    'The channel took the message but did not deliver it in time: its code can be used until it expires.',
  deadline: 'The request ended before a channel was tried.',
} as const;
export type FailureReason = keyof typeof failureReasons;

/** Whether nobody knows if the recipient has the message: neither its key nor its price is given back. */
export const isUnknown = (
  reason: string | null,
): reason is 'outcome_unknown' | 'telegram_outcome_unknown' =>
  reason === 'outcome_unknown' || reason === 'telegram_outcome_unknown';

/** Fixed at admission and never changed. Times are milliseconds, amounts micro-USD. */
export type Message = {
  id: string;
  accountId: string;
  mode: Mode;
  origin: Origin;
  phone: string;
  country: string;
  requestId: string;
  plan: Plan;
  priceMicros: number;
  idempotencyHash: string | null;
};

/**
 * What has become known since. Facts are only ever added, each once, in any order and as often as a queue likes;
 * the state is read off them, so redelivery and reordering cannot lead to another one.
 */
export type Facts = {
  channel: ChannelName | null;
  acceptedAt: number | null;
  expiresAt: number | null;
  deliveredAt: number | null;
  readAt: number | null;
  verifiedAt: number | null;
  failedAt: number | null;
  failureReason: FailureReason | null;
  expiredAt: number | null;
};

export const noFacts: Facts = {
  channel: null,
  acceptedAt: null,
  expiresAt: null,
  deliveredAt: null,
  readAt: null,
  verifiedAt: null,
  failedAt: null,
  failureReason: null,
  expiredAt: null,
};

/** Whether a device is known to have the message: such news beats any failure (reference: WhatsApp support page). */
const hasArrived = (facts: Facts): boolean => facts.deliveredAt !== null || facts.readAt !== null;

/**
 * The state of a message (spec section 3). Verified wins over everything; delivered beats failed, whatever came
 * first; what nobody verified in time is expired; a message without any other news is sent.
 */
export const statusOf = (facts: Facts): MessageStatus => {
  if (facts.verifiedAt !== null) return 'verified';
  if (facts.failedAt !== null && !hasArrived(facts)) return 'failed';
  if (facts.expiredAt !== null) return 'expired';
  return 'sent';
};

const earliest = (left: number | null, right: number | null): number | null => {
  if (left === null || right === null) return left ?? right;
  return Math.min(left, right);
};

// Telegram is only ever reached as the fallback, so its acceptance is the later one.
const lastChannel = (left: ChannelName | null, right: ChannelName | null): ChannelName | null =>
  left === 'telegram' || right === 'telegram' ? 'telegram' : (left ?? right);

/** Joins two sets of facts about one message; the order does not matter, nor does joining twice. */
export const joinFacts = (left: Facts, right: Facts): Facts => {
  const firstFailed = (left.failedAt ?? Infinity) <= (right.failedAt ?? Infinity) ? left : right;
  return {
    channel: lastChannel(left.channel, right.channel),
    acceptedAt: earliest(left.acceptedAt, right.acceptedAt),
    expiresAt: earliest(left.expiresAt, right.expiresAt),
    deliveredAt: earliest(left.deliveredAt, right.deliveredAt),
    readAt: earliest(left.readAt, right.readAt),
    verifiedAt: earliest(left.verifiedAt, right.verifiedAt),
    failedAt: firstFailed.failedAt,
    failureReason: firstFailed.failureReason,
    expiredAt: earliest(left.expiredAt, right.expiredAt),
  };
};

/**
 * When somebody must look at the message again, or null when its state is final: first the end of the template's
 * lifetime (no receipt by then means WhatsApp dropped it), then the end of the code's life. So does a failed one whose code
 * was out: that may have stayed valid, and been verified by a process that did not live to say so.
 */
export const dueAt = (facts: Facts, deliverySeconds: number): number | null => {
  const status = statusOf(facts);
  if (status === 'failed') return facts.expiresAt;
  if (status !== 'sent' || facts.expiresAt === null || facts.acceptedAt === null) return null;
  const waiting = facts.channel === 'whatsapp' && !hasArrived(facts);
  return waiting
    ? Math.min(facts.acceptedAt + deliverySeconds * 1000, facts.expiresAt)
    : facts.expiresAt;
};

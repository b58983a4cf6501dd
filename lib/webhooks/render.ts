// What a receiver reads: one envelope for all types, rendered once; never a code, a token or a secret.
import type { EventWire } from '../jobs.ts';
import { derivedId, toMessageId } from '../kernel/ids.ts';
import { toUsd } from '../kernel/money.ts';
import { costOpen, costTold } from '../messages/cost.ts';
import { sequenceOf } from './sequence.ts';

export type Rendered = { eventId: string; type: string; body: string };

/** A channel that accepted a message, ms. */
export type Leg = { channel: string; acceptedAt: number | null; deliveredAt: number | null };

const isoOrNull = (value: unknown): string | null =>
  typeof value === 'number' ? new Date(value).toISOString() : null;

/** The public name of an event; the same in every attempt. */
export const publicEventId = (eventId: string): string => `evt_${eventId}`;

const messageData = ({ message, data }: EventWire) =>
  message === null
    ? undefined
    : {
        message_id: toMessageId(message.id),
        phone: message.phone,
        country: message.country,
        channel: data.channel ?? null,
        accepted_at: isoOrNull(data.accepted_at),
        expires_at: isoOrNull(data.expires_at),
        delivered_at: isoOrNull(data.delivered_at),
        verified_at: isoOrNull(data.verified_at),
        failure_reason: data.failure_reason ?? null,
      };

const envelope = (
  event: EventWire,
  given: { id: string; type: string; data: Record<string, unknown> },
): Rendered => ({
  eventId: given.id,
  type: given.type,
  body: JSON.stringify({
    id: publicEventId(given.id),
    type: given.type,
    timestamp: new Date(event.at).toISOString(),
    mode: event.mode,
    data: given.data,
  }),
});

const ends: Record<string, string> = {
  'otp.verified': 'verified',
  'otp.failed': 'failed',
  'otp.expired': 'expired',
};

/** Whether an event ends its message, so that a summary follows it. */
export const isEnd = ({ type }: Pick<EventWire, 'type'>): boolean => type in ends;

// Per success only success costs; per message what failed is refunded.
const costOf = (event: EventWire, status: string): number => {
  const told = costTold(event);
  if (told !== undefined) return toUsd(told);
  const { plan, price_micros: price } = event.message ?? { plan: 'trial', price_micros: 0 };
  return status === 'verified' || (status === 'expired' && plan === 'per_message')
    ? toUsd(price)
    : 0;
};

/** The legs that are known, and the one that the event itself speaks of. */
const legsOf = ({ data }: EventWire, known: readonly Leg[]) => {
  const { channel } = data;
  const own = {
    channel: String(channel),
    acceptedAt: Number(data.accepted_at),
    deliveredAt: typeof data.delivered_at === 'number' ? data.delivered_at : null,
  };
  const missing =
    typeof channel === 'string' &&
    typeof data.accepted_at === 'number' &&
    !known.some((leg) => leg.channel === channel);
  return [...known, ...(missing ? [own] : [])].map((leg) => ({
    channel: leg.channel,
    accepted_at: isoOrNull(leg.acceptedAt),
    delivered_at: isoOrNull(leg.deliveredAt),
  }));
};

/** One summary per message, behind the event that ended it: what became of it, how fast, and at what cost. */
const completed = (event: EventWire, legs: readonly Leg[]): Rendered[] => {
  const status = ends[event.type];
  const data = messageData(event);
  if (status === undefined || !data || event.message === null) return [];
  const accepted = event.data.accepted_at;
  // Nobody entered an expired code: how long its life lasted says nothing about speed.
  const timed = typeof accepted === 'number' && status !== 'expired';
  const latency = timed ? Math.max(0, event.at - accepted) : null;
  // By message alone: a code that is entered after its message failed does not complete it twice.
  const id = derivedId(event.message.id, 'otp.completed');
  const summary = {
    ...{ ...data, status, latency_ms: latency, cost: costOf(event, status) },
    ...{ legs: legsOf(event, legs), sequence: sequenceOf(event) + 1 },
  };
  return [envelope(event, { id, type: 'otp.completed', data: summary })];
};

/** What our own rooms tell each other about a TOTP verification is not all a receiver's business. */
const totpData = ({ data }: EventWire) => {
  const { phone, enrollment_id, step, price_micros: price, plan, cost_micros: told } = data;
  return {
    phone,
    enrollment_id,
    step,
    cost: toUsd(Number(told ?? price ?? 0)),
    plan: plan ?? null,
  };
};

const dataOf = (event: EventWire): Record<string, unknown> =>
  messageData(event) ?? (event.type === 'totp.verified' ? totpData(event) : event.data);

/** What an event is to its receiver: itself, and where it ends a message, the summary with the `legs` known of it. */
export const render = (event: EventWire, legs: readonly Leg[] = []): Rendered[] => {
  // What tells the cost waits for billing, which sends the event again with it.
  const waits = costOpen(event);
  if (waits && event.type === 'totp.verified') return [];
  const data = { ...dataOf(event), sequence: sequenceOf(event) };
  const own = envelope(event, { id: event.id, type: event.type, data });
  return isEnd(event) && !waits ? [own, ...completed(event, legs)] : [own];
};

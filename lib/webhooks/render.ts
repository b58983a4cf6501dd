// What a receiver reads: one envelope for all types, rendered once; never a code, a token or a secret.
import type { EventWire } from '../jobs.ts';
import { derivedId, toMessageId } from '../kernel/ids.ts';
import { toUsd } from '../kernel/money.ts';

export type Rendered = { eventId: string; type: string; body: string };

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

/** One summary per message, behind the event that ended it: what became of it, how fast, and at what price. */
const completed = (event: EventWire): Rendered[] => {
  const status = ends[event.type];
  const data = messageData(event);
  if (status === undefined || !data || event.message === null) return [];
  const accepted = event.data.accepted_at;
  const latency = typeof accepted === 'number' ? event.at - accepted : null;
  // By message alone: a code that is entered after its message failed does not complete it twice.
  const id = derivedId(event.message.id, 'otp.completed');
  const price = toUsd(event.message.price_micros);
  const summary = { ...data, status, latency_ms: latency, price };
  return [envelope(event, { id, type: 'otp.completed', data: summary })];
};

/** What an event is to its receiver: itself, and where it ends a message, the summary. */
export const render = (event: EventWire): Rendered[] => {
  const data = messageData(event) ?? event.data;
  return [envelope(event, { id: event.id, type: event.type, data }), ...completed(event)];
};

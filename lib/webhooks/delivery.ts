// A delivery: one event on its way to one account's address, and how its row is read.
import { idText } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';

export type Row = Record<string, unknown>;

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'held';

export type Delivery = {
  id: string;
  accountId: string;
  eventId: string;
  type: string;
  /** Of the event. */
  mode: Mode;
  body: string;
  status: DeliveryStatus;
  /** All attempts ever made, manual ones included. */
  attempts: number;
  /** Attempts of the schedule since the event, or since it was released from being held. */
  tries: number;
  createdAt: number;
  releasedAt: number | null;
  deliveredAt: number | null;
  nextAttemptAt: number | null;
  /** Until then one process has it to itself. */
  runningUntil: number | null;
  /** Its owner asked for one more attempt, off the schedule. */
  manual: boolean;
};

export const numberOrNull = (value: unknown): number | null =>
  value === null || value === undefined ? null : Number(value);

export const toDelivery = (row: Row): Delivery => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  eventId: (row.event_id as Buffer).toString('hex'),
  type: String(row.type),
  mode: row.mode as Mode,
  body: String(row.body),
  // To everybody outside, what waits for its endpoint's turn is pending.
  status: row.status === 'waiting' ? 'pending' : (row.status as DeliveryStatus),
  attempts: Number(row.attempts),
  tries: Number(row.tries),
  createdAt: Number(row.created_at),
  releasedAt: numberOrNull(row.released_at),
  deliveredAt: numberOrNull(row.delivered_at),
  nextAttemptAt: numberOrNull(row.next_attempt_at),
  runningUntil: numberOrNull(row.running_until),
  manual: Number(row.manual) === 1,
});

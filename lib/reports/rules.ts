// Reports: which time a period is, what counts over it come to, and when a marked hour is counted again.
import { day, hour, second } from '../kernel/clock.ts';
import type { ChannelName } from '../messages/rules.ts';
import { addHistograms, emptyHistogram, type Histogram } from './latency.ts';

export type Counts = {
  requested: number;
  accepted: number;
  delivered: number;
  verified: number;
  failed: number;
  expired: number;
  spentMicros: number;
  deliverMs: number;
  verifyMs: number;
  /** From acceptance to arrival, and to the code. */
  deliver: Histogram;
  verify: Histogram;
};

export const noCounts: Counts = {
  ...{ requested: 0, accepted: 0, delivered: 0, verified: 0, failed: 0, expired: 0 },
  ...{ spentMicros: 0, deliverMs: 0, verifyMs: 0 },
  ...{ deliver: emptyHistogram, verify: emptyHistogram },
};

export const addCounts = (one: Counts, other: Counts): Counts => ({
  requested: one.requested + other.requested,
  accepted: one.accepted + other.accepted,
  delivered: one.delivered + other.delivered,
  verified: one.verified + other.verified,
  failed: one.failed + other.failed,
  expired: one.expired + other.expired,
  spentMicros: one.spentMicros + other.spentMicros,
  deliverMs: one.deliverMs + other.deliverMs,
  verifyMs: one.verifyMs + other.verifyMs,
  deliver: addHistograms(one.deliver, other.deliver),
  verify: addHistograms(one.verify, other.verify),
});

/** All of them together. */
export const totalOf = (all: readonly Counts[]): Counts => all.reduce<Counts>(addCounts, noCounts);

/** A share from 0 to 1 with four decimals; null where there is nothing to have a share of. */
export const rate = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((part / whole) * 10_000) / 10_000;

/** Whole UTC days that end with today, and as many before them (ms). */
export const periodOf = (days: number, now: number) => {
  const to = (Math.floor(now / day) + 1) * day;
  const from = to - days * day;
  return { from, to, before: from - days * day };
};

/** Hours for a day or two, days beyond. */
export const spanOf = (days: number): number => (days <= 2 ? hour : day);

/** One entry per span from `from` up to what has begun by `now`, empty ones included. */
export const fillGaps = (
  buckets: readonly (Counts & { at: number })[],
  { from, to, spanMs, now }: { from: number; to: number; spanMs: number; now: number },
): (Counts & { at: number })[] => {
  const by = Map.groupBy(buckets, ({ at }) => at);
  const filled: (Counts & { at: number })[] = [];
  for (let at = from; at < to && at <= now; at += spanMs) {
    filled.push({ ...(by.get(at) ?? []).reduce(addCounts, noCounts), at });
  }
  return filled;
};

export const channelNames: readonly ChannelName[] = ['whatsapp', 'telegram'];

/** Marks of one slot are one row, and what happens within a slot is counted once. */
export const slotMs = 2 * second;

/** How far the clocks of two processes may differ: a slot is over when it is over for all of them. */
const clockSkewMs = 2 * second;

export const slotOf = (now: number): number => Math.floor(now / slotMs);

/** The last slot that is over for every process. */
export const dueSlot = (now: number): number => slotOf(now - clockSkewMs) - 1;

/** The slot of the oldest mark, and up to when (ms) all news was heard of; undefined: none, and nobody says. */
export type Heard = { oldest: number | undefined; heard: number | undefined };

/**
 * Up to when everything is counted (ms): what is marked is still to be counted, and what was not heard of is not even
 * marked. News that was in hand when all queues were empty is marked within a slot.
 */
export const countedUntil = ({ oldest, heard }: Heard, now: number): number =>
  Math.min(
    now,
    oldest === undefined ? now : oldest * slotMs,
    heard === undefined ? now : heard - slotMs,
  );

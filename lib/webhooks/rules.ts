// Webhooks: when a delivery is tried again, what an answer means, and when an endpoint is given up (reference 03).

import { day, hour, minute, second } from '../kernel/clock.ts';
import type { NoAnswer, OutboundResult } from '../kernel/outbound.ts';

/** Waits before attempts 2, 3, …; the first is made at once. */
export const waitsMs: readonly number[] = [
  ...[5 * second, 30 * second, 2 * minute, 5 * minute, 15 * minute, 30 * minute],
  ...[hour, 2 * hour, 4 * hour, 8 * hour, 16 * hour, 16 * hour, 24 * hour],
];
/** Nothing begins later than this after the event. */
export const deliverWithinMs = 72 * hour;

/** How an endpoint fares: since when it has taken nothing, and on how many attempts and days (UTC). */
export type Failing = { failingSince: number | null; failures: number; failingDays: number };

/** Both time and volume: a count alone is seconds for a busy account, and days alone are one bad call twice. */
export const giveUp = { afterMs: 5 * day, failures: 20, days: 3 };

/** Whether an endpoint is given up: nothing taken for five days, 20 attempts failed, on three days at least. */
export const isGivenUp = ({ failingSince, failures, failingDays }: Failing, now: number): boolean =>
  failingSince !== null &&
  now - failingSince >= giveUp.afterMs &&
  failures >= giveUp.failures &&
  failingDays >= giveUp.days;

/** When an endpoint that goes on failing is given up, at the earliest, ms; null for one that is in no trouble. */
export const givenUpAt = ({ failingSince }: Failing): number | null =>
  failingSince === null ? null : failingSince + giveUp.afterMs;

const jitter = 0.2;
/** Retry-After is obeyed up to here. */
const retryAfterMostMs = 6 * hour;
const busyWaitMs = minute;
/** An endpoint that asks for time gets it as a whole, but no longer than this. */
const pauseMostMs = 10 * minute;
/** An answer that our repeating will hardly change is not asked for again within the first minute. */
const refusedStep = 2;

/** `our_network`: the fault was our own, and the attempt does not count. */
export type Reason = NoAnswer | 'redirect' | 'gone' | 'status' | 'our_network';

/** What an attempt came to. */
export type Judgement =
  | { kind: 'delivered' }
  /** The endpoint says it is no more, or is one we must not call: nothing goes there. */
  | { kind: 'stop'; reason: Reason }
  | { kind: 'again'; reason: Reason; waitMs: number }
  /** The last attempt there is. */
  | { kind: 'over'; reason: Reason };

/** Seconds or an HTTP date (RFC 9110 section 10.2.3), in ms from `now`; 0 when there is none. */
export const readRetryAfter = (value: string | undefined, now: number): number => {
  if (value === undefined) return 0;
  const at = /^\d+$/.test(value) ? now + Number(value) * second : Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.min(Math.max(at - now, 0), retryAfterMostMs);
};

const reasonFor = (result: OutboundResult): Reason => {
  if (result.kind === 'none') return result.reason;
  if (result.status === 410) return 'gone';
  return result.status >= 300 && result.status < 400 ? 'redirect' : 'status';
};

/** The address itself is one we must not call, today and tomorrow; a name that leads astray may be put right. */
export const unsafe: ReadonlySet<Reason> = new Set<Reason>(['blocked_address', 'bad_url']);

const busy = new Set([429, 502, 503, 504]);
const passing = new Set([408, 425]);

/**
 * Until when an endpoint wants to be left alone: Retry-After with 429 or 503 pauses all that is on its way there, not
 * one delivery; undefined when it asks for nothing.
 */
export const pauseOf = (result: OutboundResult, now: number): number | undefined => {
  if (result.kind === 'none' || !(result.status === 429 || result.status === 503)) return undefined;
  const waitMs = readRetryAfter(result.retryAfter, now);
  return waitMs > 0 ? now + Math.min(waitMs, pauseMostMs) : undefined;
};

const leastWait = (result: OutboundResult, now: number): number => {
  if (result.kind === 'none') return 0;
  const { status, retryAfter } = result;
  if (busy.has(status)) return readRetryAfter(retryAfter, now) || busyWaitMs;
  const refused = status >= 400 && status < 500 && !passing.has(status);
  return refused ? (waitsMs[refusedStep] ?? 0) : 0;
};

const ownFaultWaitMs = 30 * second;

/** What follows from an attempt that failed by our own fault: the same one again, whatever the schedule says. */
export const againForUs = (chance: number): Judgement => ({
  kind: 'again',
  reason: 'our_network',
  waitMs: Math.round(ownFaultWaitMs * (1 + jitter * (2 * chance - 1))),
});

/**
 * What follows from an attempt. `number` counts the schedule's from 1, `since` (ms) is when the schedule began, `chance`
 * is in [0, 1): it spreads what failed together, from the second repeat on.
 */
export const judge = (
  result: OutboundResult,
  given: { number: number; since: number; now: number; chance: number },
): Judgement => {
  const { number, since, now, chance } = given;
  if (result.kind === 'answer' && result.status >= 200 && result.status < 300) {
    return { kind: 'delivered' };
  }
  const reason = reasonFor(result);
  if (reason === 'gone' || unsafe.has(reason)) return { kind: 'stop', reason };
  const step = waitsMs[number - 1];
  if (step === undefined) return { kind: 'over', reason };
  const spread = number === 1 ? 1 : 1 + jitter * (2 * chance - 1);
  const waitMs = Math.round(Math.max(step * spread, leastWait(result, now)));
  if (now + waitMs > since + deliverWithinMs) return { kind: 'over', reason };
  return { kind: 'again', reason, waitMs };
};

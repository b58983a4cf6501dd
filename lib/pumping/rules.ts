// When a prefix is being pumped: what counts as evidence, what it takes to hold a prefix, and for how long.
import { platformAccountId } from '../accounts/platform.ts';
import type { EventWire } from '../jobs.ts';
import { day, hour, minute } from '../kernel/clock.ts';
import { idTime } from '../kernel/ids.ts';
import type { Origin } from '../messages/rules.ts';

/** off: nothing is counted. shadow: holds are decided and logged, nothing is refused. */
export type GuardMode = 'off' | 'shadow' | 'enforce';

/** The rolling window of all evidence. */
export const windowMs = hour;

/**
 * What it takes to judge: `minimum` settled messages (of one account, or of all suspects together), and for an account
 * that is judged together with others, `share` messages of its own that were not verified.
 */
export type Bounds = { minimum: number; share: number };

/** An account's block of 10,000 numbers, an account's country, and a country of the whole platform (an alarm alone). */
export const judgedFrom = { prefix: 30, country: 500 } as const;
export const bounds: Readonly<Record<'prefix' | 'country', Bounds>> = {
  prefix: { minimum: judgedFrom.prefix, share: 3 },
  country: { minimum: 300, share: 30 },
};

/**
 * An open code counts as one that was not entered from this age on, and as half of one before: most codes that are
 * entered at all are entered within a minute.
 */
export const graceMs = minute;

/** An open code is forgotten after this time: its end was announced by then, or it failed. */
export const openKeepMs = 10 * minute;

/** A hold that rests on open codes lasts until they are settled. */
export const earlyHoldMs = 10 * minute;

/**
 * A known good account: this many verified codes within seven days, and since the oldest of them at most twice as many
 * that were not. It is held for its own failures alone.
 */
export const standing = { verified: 50, unverified: 100, withinMs: 7 * day } as const;

/** How long the source of a sign-up is remembered, for accounts of one source to count together. */
export const sourceKeptMs = 30 * day;

/** A first hold lasts an hour, every further one twice as long, none longer than a day. */
const firstHoldMs = hour;
export const longestHoldMs = day;

/** After this long without a hold a prefix is as good as new: the next hold is a first one again. */
export const forgetMs = day;

/**
 * Delivers are judged only for accounts that verify here: the newest this many verified delivers are of the last day.
 * An account that checks its own codes itself never calls verify, and would look pumped whoever its users are (Vonage
 * warns of the same); one that tries verify out now and then must not either.
 */
export const reporting = { delivers: 30, withinMs: day } as const;

export type Tally = { settled: number; verified: number };

/** Fewer than one in ten of at least `minimum` settled messages was verified. */
export const isPumped = ({ settled, verified }: Tally, minimum: number): boolean =>
  settled >= minimum && verified * 10 < settled;

/**
 * Why an account is held:
 * - unverified: hardly any of its own codes there were entered.
 * - across_accounts: so it is with its own, and with those of other accounts there; or of accounts of its source.
 * - undelivered: its own codes, which it checks itself, mostly have no receipt, and many go to this block.
 * - concentrated: most of the codes that it checks itself go to this one block.
 */
export const holdReasons = [
  'unverified',
  'across_accounts',
  'undelivered',
  'concentrated',
] as const;
export type HoldReason = (typeof holdReasons)[number];

/** What a hold rests on. `accounts` is 1 unless accounts were judged together; the counts are then of all of them. */
export type Grounds = {
  reason: HoldReason;
  /** It rests on codes that are open still. */
  early: boolean;
  accounts: number;
  together: Tally;
};

/** `level` counts holds in a row that rest on settled codes, from 1; an early one has the level before. Times are ms. */
export type Hold = Tally & {
  level: number;
  since: number;
  until: number;
  /** What was sent before is no evidence for a further hold. */
  spent: number;
};

/** A hold and what it rests on. */
export type GroundedHold = Hold & Grounds;

/** Whether a hold rests on open codes: it has spent no evidence. */
export const isEarly = ({ spent, until }: Hold): boolean => spent !== until;

/** How long the hold of a level lasts, in ms. */
export const holdMs = (level: number): number =>
  Math.min(firstHoldMs * 2 ** (level - 1), longestHoldMs);

/** The hold that begins at `now` on the evidence of `tally`; `previous` is the last one of the same prefix. */
export const nextHold = (
  previous: Hold | undefined,
  tally: Tally,
  now: number,
  early = false,
): Hold => {
  const inARow = previous !== undefined && now < previous.until + forgetMs;
  const level = inARow ? previous.level : 0;
  const { settled, verified } = tally;
  if (early) {
    const until = now + earlyHoldMs;
    return { settled, verified, level, since: now, until, spent: previous?.spent ?? 0 };
  }
  const until = now + holdMs(level + 1);
  return { settled, verified, level: level + 1, since: now, until, spent: until };
};

/** What became of a live message, as far as one event tells. */
export type Sign = 'sent' | 'delivered' | 'verified' | 'expired' | 'undelivered' | 'failed';

/** One event about a live message. Times are ms. */
export type Evidence = {
  id: string;
  accountId: string;
  phone: string;
  country: string;
  origin: Origin;
  sign: Sign;
  /** A device has it, as far as this event knows. */
  arrived: boolean;
  at: number;
  /** When a channel took it: what was sent before a hold ended is no evidence for the next one. */
  sentAt: number;
};

const signs: Readonly<Record<string, Sign>> = {
  'otp.sent': 'sent',
  'otp.delivered': 'delivered',
  'otp.verified': 'verified',
  'otp.expired': 'expired',
  'otp.failed': 'failed',
};

// Only WhatsApp sends receipts: what Telegram took has arrived.
const hasArrived = ({ delivered_at: at, channel }: EventWire['data']): boolean =>
  typeof at === 'number' || channel === 'telegram';

const signOf = ({ type, data, message }: EventWire): Sign | undefined => {
  const undelivered = type === 'otp.failed' && data.failure_reason === 'not_delivered';
  return undelivered && message?.origin === 'deliver' ? 'undelivered' : signs[type];
};

/**
 * What an event says about pumping, or undefined. A failed message is no evidence: it reached nobody, so nobody
 * earned by it, and a channel that is down would have every prefix held. One that arrives all the same, or is
 * verified after its failure, has its own event later.
 */
export const evidenceOf = (event: EventWire, now: number): Evidence | undefined => {
  const { message, at, data } = event;
  const sign = signOf(event);
  if (message?.mode !== 'live' || sign === undefined) return undefined;
  if (at <= now - windowMs) return undefined;
  const { id, account_id: accountId, phone, country, origin } = message;
  const sentAt = typeof data.accepted_at === 'number' ? data.accepted_at : idTime(id);
  const arrived = hasArrived(data);
  return { id, accountId, phone, country, origin, sign, arrived, at, sentAt };
};

/** The block of ten thousand numbers a phone is in (E.164 without the last four digits). */
export const prefixOf = (phone: string): string => phone.slice(0, -4);

const shownMost = 5;
const hiddenLeast = 2;

/** `+2010********`: a prefix as logs may show it. */
export const maskPrefix = (prefix: string): string => {
  const shown = Math.min(shownMost, prefix.length - hiddenLeast);
  return prefix.slice(0, shown) + '*'.repeat(prefix.length - shown + 4);
};

/** Who is never judged: whole accounts, and all numbers that begin with a prefix. */
export type Allowed = { accounts: ReadonlySet<string>; prefixes: readonly string[] };

const parts = (list: string): string[] => list.split(',').filter((part) => part !== '');

/**
 * The allow-list from its settings, two comma lists. The platform account, which sends password resets to the owners of
 * accounts, is always on it: strangers ask for those codes, and a hold would lock every owner of a block of numbers out.
 * The playground account is not: whatever strangers pump there, no owner waits for it.
 */
export const parseAllowed = (accounts: string, prefixes: string): Allowed => ({
  accounts: new Set([platformAccountId, ...parts(accounts)]),
  prefixes: parts(prefixes),
});

export const isAllowed = (allowed: Allowed, accountId: string, phone: string): boolean =>
  allowed.accounts.has(accountId) || allowed.prefixes.some((prefix) => phone.startsWith(prefix));

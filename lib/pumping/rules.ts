// When a prefix is being pumped: what counts as evidence, what it takes to hold a prefix, and for how long.
import type { EventWire } from '../jobs.ts';
import { day, hour } from '../kernel/clock.ts';
import { idTime } from '../kernel/ids.ts';
import type { Origin } from '../messages/rules.ts';

/** off: nothing is counted. shadow: holds are decided and logged, nothing is refused. */
export type GuardMode = 'off' | 'shadow' | 'enforce';

/** The rolling window of all evidence (reference 06 section 3.6). */
export const windowMs = hour;

/** Settled messages it takes to judge an account's prefix, and a country of the whole platform. */
export const judgedFrom = { prefix: 30, country: 500 } as const;

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

/** `level` counts holds in a row, from 1; times are ms. */
export type Hold = Tally & { level: number; since: number; until: number };

/** How long the hold of a level lasts, in ms. */
export const holdMs = (level: number): number =>
  Math.min(firstHoldMs * 2 ** (level - 1), longestHoldMs);

/** The hold that begins at `now` on the evidence of `tally`; `previous` is the last one of the same prefix. */
export const nextHold = (previous: Hold | undefined, tally: Tally, now: number): Hold => {
  const inARow = previous !== undefined && now < previous.until + forgetMs;
  const level = inARow ? previous.level + 1 : 1;
  return { ...tally, level, since: now, until: now + holdMs(level) };
};

/** A live message that is settled: somebody verified it, or nobody did in its life. Times are ms. */
export type Settled = {
  id: string;
  accountId: string;
  phone: string;
  country: string;
  origin: Origin;
  verified: boolean;
  at: number;
  /** When a channel took it: what was sent before a hold ended is no evidence for the next one. */
  sentAt: number;
};

/**
 * What an event says about pumping, or undefined. A failed message is no evidence: it reached nobody, so nobody
 * earned by it, and a channel that is down would have every prefix held. One that arrives all the same, or is
 * verified after its failure, has its own event later.
 */
export const settledBy = (event: EventWire, now: number): Settled | undefined => {
  const { message, type, at, data } = event;
  if (message?.mode !== 'live') return undefined;
  if (type !== 'otp.verified' && type !== 'otp.expired') return undefined;
  if (at <= now - windowMs) return undefined;
  const { id, account_id: accountId, phone, country, origin } = message;
  const sentAt = typeof data.accepted_at === 'number' ? data.accepted_at : idTime(id);
  return { id, accountId, phone, country, origin, verified: type === 'otp.verified', at, sentAt };
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

/** The allow-list from its settings, two comma lists. */
export const parseAllowed = (accounts: string, prefixes: string): Allowed => ({
  accounts: new Set(parts(accounts)),
  prefixes: parts(prefixes),
});

export const isAllowed = (allowed: Allowed, accountId: string, phone: string): boolean =>
  allowed.accounts.has(accountId) || allowed.prefixes.some((prefix) => phone.startsWith(prefix));

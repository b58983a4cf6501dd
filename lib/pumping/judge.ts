// Who is held: the decision over the accounts of one block of numbers or one country, as a pure function.
import type { Bounds, Grounds, HoldReason, Tally } from './rules.ts';

/** Codes of an account that are verified here. `open` are those whose end is not known, young ones by half. */
export type Codes = Tally & { open: number };

/** Codes that an account checks itself: `known` are old enough to have a receipt, or have one. */
export type Delivers = {
  known: number;
  arrived: number;
  /** All to this block, and all of the account, within the window. */
  here: number;
  everywhere: number;
};

/** What one account does in one block or country. `bad` shares are counted together. */
export type Share = {
  accountId: string;
  /** A known good account answers for itself alone, and does not count for others. */
  good: boolean;
  /** Opaque names of where the account was made from; accounts that share one count together. */
  sources: readonly string[];
  settled: number;
  verified: number;
  open: number;
  /** What is wrong with it by itself; null: nothing. */
  fault: Exclude<HoldReason, 'across_accounts'> | null;
};

/** Fewer than one in ten of some messages was verified. */
const isLow = (verified: number, all: number): boolean => verified * 10 < all;

/** The share of codes that are verified here. */
export const shareOfCodes = (
  whose: Pick<Share, 'accountId' | 'good' | 'sources'>,
  { settled, verified, open }: Codes,
): Share => {
  const { accountId, good, sources } = whose;
  const fault = isLow(verified, settled + open) ? 'unverified' : null;
  return { accountId, good, sources, settled, verified, open, fault };
};

/** So many delivers with a receipt to one block weigh as one without. */
const arrivedWeight = 3;
/** Fewer delivers than these say nothing about where an account sends. */
const concentratedFrom = 10;

/**
 * The share of codes that the account checks itself. Receipts alone say little (WhatsApp may be slow for everybody), so
 * an account whose delivers go to many blocks has no fault: a quarter of all must go to this one while most of these
 * have no receipt, or half of all, whatever their receipts say.
 */
export const shareOfDelivers = (
  whose: Pick<Share, 'accountId' | 'good' | 'sources'>,
  { known, arrived, here, everywhere }: Delivers,
): Share => {
  const { accountId, good, sources } = whose;
  const undelivered = arrived * 2 < known && here * 4 >= everywhere;
  const concentrated = here >= concentratedFrom && here * 2 >= everywhere;
  const settled = Math.max(
    undelivered ? known - arrived : 0,
    concentrated ? Math.floor(here / arrivedWeight) : 0,
  );
  const fault = undelivered ? 'undelivered' : concentrated ? 'concentrated' : null;
  return { accountId, good, sources, settled, verified: 0, open: 0, fault };
};

const missing = ({ settled, verified, open }: Share): number => settled - verified + open;

const sumOf = (shares: readonly Share[], read: (share: Share) => number): number =>
  shares.reduce((total, share) => total + read(share), 0);

const groundsFrom = (reason: HoldReason, shares: readonly Share[], early: boolean): Grounds => ({
  reason,
  early,
  accounts: new Set(shares.map(({ accountId }) => accountId)).size,
  together: {
    settled: Math.floor(sumOf(shares, ({ settled, open }) => settled + (early ? open : 0))),
    verified: sumOf(shares, ({ verified }) => verified),
  },
});

const isLowSettled = ({ settled, verified }: Share): boolean => isLow(verified, settled);

/**
 * Why shares that have a fault each are enough together, or undefined. Settled codes first; early: only with those that
 * are open still. Each share counts by what is wrong with it alone, so that one more verified code never adds to a sum.
 */
const enough = (
  reason: HoldReason,
  mine: Share,
  shares: readonly Share[],
  minimum: number,
): Grounds | undefined => {
  const low = shares.filter(isLowSettled);
  if (isLowSettled(mine) && sumOf(low, ({ settled }) => settled) >= minimum) {
    return groundsFrom(reason, low, false);
  }
  return sumOf(shares, missing) >= minimum ? groundsFrom(reason, shares, true) : undefined;
};

const shareASource = (one: Share, other: Share): boolean =>
  one.accountId === other.accountId || one.sources.some((source) => other.sources.includes(source));

/**
 * Why `mine` is to be held, or undefined. A share without a fault of its own is never held, and one of a good account
 * only for its own messages. Any other is judged together with the shares of its source, and, once it has enough of
 * its own that were not verified, with those of all suspects.
 */
export const judge = (
  mine: Share,
  shares: readonly Share[],
  { minimum, share }: Bounds,
): Grounds | undefined => {
  const { fault } = mine;
  if (fault === null) return undefined;
  const alone = enough(fault, mine, [mine], minimum);
  if (mine.good || alone?.early === false) return alone;
  const suspects = shares.filter((other) => other.fault !== null && !other.good);
  const kin = suspects.filter((other) => shareASource(mine, other));
  const weighs = sumOf(kin, missing) >= share;
  const together = weighs ? suspects : kin;
  const withOthers = enough('across_accounts', mine, together, minimum);
  return alone && withOthers?.early !== false ? alone : withOthers;
};

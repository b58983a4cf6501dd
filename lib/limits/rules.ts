// The tiers of the account-wide send allowance, and which rows of the admission table guard which call.
import { type AllowanceName, admissionTable, type LimitRow, type Operation } from './table.ts';

export type TierName = 'standard' | 'tier-1000' | 'tier-5000' | 'custom';

/** Aggregate send allowance of an account: requests per 10 s, per minute, per hour. Recipient rows never change. */
export type Tier = { name: TierName } & Record<AllowanceName, number>;

// A third of the minute in ten seconds, as the standard tier's 100 of 300; 60 minutes of the sustained rate.
const shapedTier = (
  name: TierName,
  sustained: number,
  burst = Math.round(sustained / 3),
): Tier => ({ name, burst: Math.max(burst, 1), sustained, hourly: 60 * sustained });

export const standardTier: Tier = shapedTier('standard', 300);
export const tier1000: Tier = shapedTier('tier-1000', 1_000);
export const tier5000: Tier = shapedTier('tier-5000', 5_000);

/** What a custom tier may be set to, per minute. */
export const customTierBounds = { min: 1, max: 20_000 } as const;

/**
 * A reviewed rate of one account, per minute, with its own ten-second burst if it was granted one (never more than
 * the minute's). Throws RangeError outside the bounds.
 */
export const customTier = (sustained: number, burst?: number): Tier => {
  const { min, max } = customTierBounds;
  if (!Number.isInteger(sustained) || sustained < min || sustained > max) {
    throw new RangeError(`a custom tier is a whole number from ${min} to ${max} per minute`);
  }
  if (burst !== undefined && (!Number.isInteger(burst) || burst < 1 || burst > sustained)) {
    throw new RangeError('a custom burst is a whole number from 1 to the sustained rate');
  }
  return shapedTier('custom', sustained, burst);
};

const fixedTiers = { standard: standardTier, 'tier-1000': tier1000, 'tier-5000': tier5000 };

/** The tier of that name; `custom` has no numbers of its own: use `customTier`. */
export const fixedTier = (name: Exclude<TierName, 'custom'>): Tier => fixedTiers[name];

/** The rows that guard `operation` for an account of `tier`, with that tier's numbers, in table order. */
export const rowsFor = (operation: Operation, tier: Tier): LimitRow[] =>
  admissionTable
    .filter((row) => row.operations.includes(operation))
    .map((row) => (row.tiered === undefined ? row : { ...row, limit: tier[row.tiered] }));

/** Up to this limit every admission is remembered exactly; above it, counted in 60 buckets a window. */
export const exactUpTo = 1_000;

// The limits of the contract (spec section 8) and ours beside it as one table, the tiers, and which rows apply to what.
import { day, hour, minute, second } from '../kernel/clock.ts';

export type Operation =
  | 'send'
  | 'deliver'
  | 'verify'
  | 'telegram_link'
  | 'status'
  | 'read'
  | 'export'
  | 'key_change'
  | 'webhook_change'
  | 'connect'
  | 'playground'
  | 'register'
  | 'anonymous';

/** Customer-safe category of a refusal (`error.reason`). */
export type Reason =
  | 'burst'
  | 'sustained'
  | 'hourly'
  | 'cooldown'
  | 'recipient_protection'
  | 'fraud_protection'
  | 'capacity';

/** Customer-safe limiting dimension (`error.dimension`). */
export type Dimension =
  | 'recipient'
  | 'recipient_global'
  | 'credential'
  | 'account'
  | 'source_ip'
  | 'login'
  | 'playground';

/** What a row counts by; rows of one group live in one Cluster slot, rows of one `key` share one log. */
export type Group = 'accountPhone' | 'phone' | 'account' | 'source';

export type AllowanceName = 'burst' | 'sustained' | 'hourly';

export type LimitRow = {
  name: string;
  /** The scope in the words of the contract. */
  scope: string;
  /** Requests per window; of the standard tier where `tiered` names the tier's own number. */
  limit: number;
  windowMs: number;
  reason: Reason;
  dimension: Dimension;
  operations: readonly Operation[];
  group: Group;
  /** Short name of the Redis key. */
  key: string;
  tiered?: AllowanceName;
};

const sends = ['send', 'deliver'] as const;
const recipient = { reason: 'recipient_protection' } as const;

/**
 * Spec section 8, then the rows it leaves open (reference 06 §2.10). Order matters to the script: rows of one key are
 * adjacent, the longest window last; the account's three allowances close the list.
 * "Same recipient phone (send)" is read as account and phone, because the row across accounts is wider.
 */
export const limitTable = [
  {
    name: 'resend',
    scope: 'Same account and recipient (resend)',
    limit: 1,
    windowMs: 30 * second,
    reason: 'cooldown',
    dimension: 'recipient',
    operations: sends,
    group: 'accountPhone',
    key: 'ap',
  },
  {
    name: 'send',
    scope: 'Same recipient phone (send)',
    limit: 3,
    windowMs: 10 * minute,
    ...recipient,
    dimension: 'recipient',
    operations: sends,
    group: 'accountPhone',
    key: 'ap',
  },
  {
    name: 'recipient_10m',
    scope: 'Same recipient across all accounts',
    limit: 6,
    windowMs: 10 * minute,
    ...recipient,
    dimension: 'recipient_global',
    operations: sends,
    group: 'phone',
    key: 'p',
  },
  {
    name: 'recipient_24h',
    scope: 'Same recipient across all accounts',
    limit: 20,
    windowMs: day,
    ...recipient,
    dimension: 'recipient_global',
    operations: sends,
    group: 'phone',
    key: 'p',
  },
  {
    name: 'credential',
    scope: 'Same API credential (OTP send or verify)',
    limit: 300,
    windowMs: minute,
    reason: 'sustained',
    dimension: 'credential',
    operations: [...sends, 'verify'],
    group: 'account',
    key: 'c',
  },
  {
    name: 'burst',
    scope: 'Same account or credential (OTP burst, standard)',
    limit: 100,
    windowMs: 10 * second,
    reason: 'burst',
    dimension: 'account',
    operations: sends,
    group: 'account',
    key: 'b',
    tiered: 'burst',
  },
  {
    name: 'sustained',
    scope: 'Same account (sustained)',
    limit: 300,
    windowMs: minute,
    reason: 'sustained',
    dimension: 'account',
    operations: sends,
    group: 'account',
    key: 's',
    tiered: 'sustained',
  },
  {
    name: 'hourly',
    scope: 'Same account (hourly backstop, 60 times sustained)',
    limit: 18_000,
    windowMs: hour,
    reason: 'hourly',
    dimension: 'account',
    operations: sends,
    group: 'account',
    key: 'h',
    tiered: 'hourly',
  },
] as const satisfies readonly LimitRow[];

export type TierName = 'standard' | 'tier-1000' | 'tier-5000' | 'custom';

/** Aggregate send allowance of an account: requests per 10 s, per minute, per hour. Recipient rows never change. */
export type Tier = { name: TierName } & Record<AllowanceName, number>;

// A third of the minute in ten seconds, as the standard tier's 100 of 300; 60 minutes of the sustained rate.
const shapedTier = (
  name: TierName,
  sustained: number,
  burst = Math.round(sustained / 3),
): Tier => ({
  name,
  burst: Math.max(burst, 1),
  sustained,
  hourly: 60 * sustained,
});

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

/** The named tier; `custom` has no numbers of its own: use `customTier`. */
export const fixedTier = (name: Exclude<TierName, 'custom'>): Tier =>
  ({ standard: standardTier, 'tier-1000': tier1000, 'tier-5000': tier5000 })[name];

/** The rows that guard `operation` for an account of `tier`, with that tier's numbers, in table order. */
export const rowsFor = (operation: Operation, tier: Tier): LimitRow[] => {
  const rows: readonly LimitRow[] = limitTable;
  return rows
    .filter((row) => row.operations.includes(operation))
    .map((row) => (row.tiered === undefined ? row : { ...row, limit: tier[row.tiered] }));
};

/** Up to this limit every admission is remembered exactly; above it, counted in 60 buckets a window. */
export const exactUpTo = 1_000;

// Requests for more capacity: what one holds, its states, and the tier an approval leads to (spec sections 2 and 8).
import type { Account } from '../accounts/rules.ts';
import { day } from '../kernel/clock.ts';
import { customTierBounds } from '../limits/rules.ts';

/** The only schema version there is (spec section 9). */
export const schemaVersion = '2026-09-01';

/** How long a reviewed tier holds unless the review says otherwise. */
export const reviewedTierMs = 90 * day;

export type CapacityStatus = 'pending' | 'approved' | 'rejected' | 'cancelled';

export type CapacityRequest = {
  id: string;
  accountId: string;
  sustained: number;
  burst: number;
  expectedSustained: number;
  expectedPeak: number;
  justification: string;
  facts: string | null;
  status: CapacityStatus;
  updatedAt: number;
  cancelledAt: number | null;
  reviewedAt: number | null;
};

/** What may be asked for: within the bounds of a custom tier. */
export const capacityBounds = {
  sustained: customTierBounds,
  burst: customTierBounds,
  justification: { min: 20, max: 2_000 },
  facts: { max: 4_000 },
} as const;

/** The tier that carries so many sends a minute: a fixed one where it fits exactly, else a custom one. */
export const tierFor = (perMinute: number, expiresAt: number): Account['tier'] => {
  if (perMinute === 1_000) return { name: 'tier-1000', perMinute: null, expiresAt };
  if (perMinute === 5_000) return { name: 'tier-5000', perMinute: null, expiresAt };
  return { name: 'custom', perMinute, expiresAt };
};

// The send allowance an account has right now.
import type { Account } from '../accounts/rules.ts';
import { customTier, fixedTier, standardTier, type Tier } from './rules.ts';

/** The reviewed tier of an account until it ends, then the standard one (spec section 8). `now` in ms. */
export const tierOf = ({ tier }: Pick<Account, 'tier'>, now: number): Tier => {
  if (tier.expiresAt !== null && tier.expiresAt <= now) return standardTier;
  if (tier.name !== 'custom') return fixedTier(tier.name);
  return tier.perMinute === null ? standardTier : customTier(tier.perMinute);
};

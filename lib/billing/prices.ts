// What a destination costs an account, and what is paused: remembered in the process until something changes.
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { PriceStore, StoredPrice, SwitchName } from './price-store.ts';

const rememberMs = 60_000;
const rememberedMax = 10_000;

/**
 * The price of a destination: the account's own, else the platform's for the country, else the platform's for all.
 * @throws INTL_PRICING_NOT_CONFIGURED, INTL_PRICE_BELOW_COST
 */
export const priceOf = (stored: StoredPrice, everywhereMicros: number): number => {
  const { overrideMicros, priceMicros, costMicros } = stored;
  const price =
    overrideMicros ?? (priceMicros === undefined ? everywhereMicros : (priceMicros ?? undefined));
  if (price === undefined) throw fail('INTL_PRICING_NOT_CONFIGURED');
  if (price < costMicros) throw fail('INTL_PRICE_BELOW_COST');
  return price;
};

export type Prices = {
  /** @throws INTL_PRICING_NOT_CONFIGURED, INTL_PRICE_BELOW_COST */
  of(accountId: string, country: string): Promise<number>;
  isPaused(name: SwitchName): Promise<boolean>;
  isSharedPausedFor(accountId: string): Promise<boolean>;
};

/** Reads through to MySQL; what was read is trusted for a minute, as long as nothing was announced anywhere. */
export const createPrices = (deps: {
  prices: PriceStore;
  revocations: Pick<Revocations, 'epoch'>;
  clock: Clock;
  everywhereMicros: number;
}): Prices => {
  const { prices, revocations, clock, everywhereMicros } = deps;
  const remembered = new Map<string, { value: unknown; epoch: string; until: number }>();

  const recall = async <T>(key: string, read: () => Promise<T>): Promise<T> => {
    const epoch = revocations.epoch();
    const now = clock.now();
    const known = remembered.get(key);
    if (known && known.epoch === epoch && known.until > now) return known.value as T;
    const value = await read();
    if (epoch !== undefined) {
      if (remembered.size >= rememberedMax) remembered.clear();
      remembered.set(key, { value, epoch, until: now + rememberMs });
    }
    return value;
  };

  return {
    of: async (accountId, country) => {
      const read = () => prices.find(accountId, country);
      return priceOf(await recall(`${accountId} ${country}`, read), everywhereMicros);
    },
    isPaused: async (name) => (await recall('paused', () => prices.paused())).has(name),
    isSharedPausedFor: (accountId) =>
      recall(`paused ${accountId}`, () => prices.isSharedPaused(accountId)),
  };
};

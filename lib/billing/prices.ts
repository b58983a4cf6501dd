// What a destination costs an account, and what is paused: remembered in the process until something changes.
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { PlatformPrice, PriceStore, SwitchName } from './price-store.ts';

const rememberMs = 60_000;
const rememberedMax = 10_000;

/**
 * The price of a destination: the account's own, else the platform's for the country, else the platform's for all.
 * @throws INTL_PRICING_NOT_CONFIGURED, INTL_PRICE_BELOW_COST
 */
export const priceOf = (
  ownMicros: number | undefined,
  platform: Pick<PlatformPrice, 'priceMicros' | 'costMicros'> | undefined,
  everywhereMicros: number,
): number => {
  const price = ownMicros ?? (platform ? platform.priceMicros : everywhereMicros);
  if (price === null) throw fail('INTL_PRICING_NOT_CONFIGURED');
  if (price < (platform?.costMicros ?? 0)) throw fail('INTL_PRICE_BELOW_COST');
  return price;
};

export type Prices = {
  /** @throws INTL_PRICING_NOT_CONFIGURED, INTL_PRICE_BELOW_COST */
  of(accountId: string, country: string): Promise<number>;
  isPaused(name: SwitchName): Promise<boolean>;
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

  const readPlatform = async (): Promise<Map<string, PlatformPrice>> =>
    new Map((await prices.platform()).map((price) => [price.country, price]));

  return {
    of: async (accountId, country) => {
      // Few rows for everybody, and fewer of one account: neither is asked for again for every destination.
      const [platform, own] = await Promise.all([
        recall('platform', readPlatform),
        recall(accountId, () => prices.own(accountId)),
      ]);
      return priceOf(own.get(country), platform.get(country), everywhereMicros);
    },
    isPaused: async (name) => (await recall('paused', () => prices.paused())).has(name),
  };
};

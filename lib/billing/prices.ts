// What a destination costs an account, and what is paused: remembered in the process until something changes.
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { createMemory, type Memory } from '../keys/memory.ts';
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

/** What a message to a destination costs its sender, and the platform; micro-USD. */
export type DestinationPrice = { priceMicros: number; costMicros: number };

export type Prices = {
  /**
   * Where the operator has said nothing of a country's cost it is taken to be the price for everywhere, which is to
   * cover it. @throws INTL_PRICING_NOT_CONFIGURED, INTL_PRICE_BELOW_COST
   */
  of(accountId: string, country: string): Promise<DestinationPrice>;
  /** What a message to a country costs the platform, micro-USD. */
  costOf(country: string): Promise<number>;
  isPaused(name: SwitchName): Promise<boolean>;
};

/** Reads through to MySQL; what was read is trusted for a minute, as long as nothing was announced about it. */
export const createPrices = (deps: {
  prices: PriceStore;
  revocations: Pick<Revocations, 'epoch' | 'news'>;
  clock: Clock;
  everywhereMicros: number;
}): Prices => {
  const { prices, revocations, clock, everywhereMicros } = deps;
  const kept = { revocations, clock, keepMs: () => rememberMs, most: rememberedMax };
  const ofPlatform = createMemory<Map<string, PlatformPrice>>({ ...kept, about: () => undefined });
  const ofAccounts = createMemory<Map<string, number>>({ ...kept, about: (_, id) => id });
  const pauses = createMemory<Set<SwitchName>>({ ...kept, about: () => undefined });

  const asked = async <T>(memory: Memory<T>, key: string, ask: () => Promise<T>): Promise<T> =>
    (memory.recall(key) ?? { value: await memory.learn(key, ask) }).value;

  const readPlatform = async (): Promise<Map<string, PlatformPrice>> =>
    new Map((await prices.platform()).map((price) => [price.country, price]));

  const costIn = (known: PlatformPrice | undefined): number =>
    known === undefined ? everywhereMicros : known.costMicros;

  return {
    of: async (accountId, country) => {
      // Few rows for everybody, and fewer of one account: neither is asked for again for every destination.
      const [platform, own] = await Promise.all([
        asked(ofPlatform, 'all', readPlatform),
        asked(ofAccounts, accountId, () => prices.own(accountId)),
      ]);
      const known = platform.get(country);
      return {
        priceMicros: priceOf(own.get(country), known, everywhereMicros),
        costMicros: costIn(known),
      };
    },
    costOf: async (country) => costIn((await asked(ofPlatform, 'all', readPlatform)).get(country)),
    isPaused: async (name) => (await asked(pauses, 'all', () => prices.paused())).has(name),
  };
};

// Countries of the whole platform: one that hardly converts is told to the operator. Who is held there is decided with the blocks of numbers.
import { type Clock, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { type Evidence, isPumped, judgedFrom, windowMs } from './rules.ts';
import type { PumpingStore } from './store.ts';

/** A tally reads two dozen keys: a busy country is looked at this often by one process, not with every batch. */
const lookEveryMs = 10 * second;

export type CountryWatch = { count(messages: readonly Evidence[]): Promise<void> };

/** Counts settled messages by country, and logs one line per country and clock hour while it looks pumped. */
export const createCountryWatch = (deps: {
  store: Pick<PumpingStore, 'addToCountry' | 'countryTally' | 'claimAlarm'>;
  clock: Clock;
  log: Log;
}): CountryWatch => {
  const { store, clock, log } = deps;
  const lookedAt = new Map<string, number>();

  const look = async (country: string): Promise<void> => {
    const now = clock.now();
    if (now < (lookedAt.get(country) ?? 0) + lookEveryMs) return;
    lookedAt.set(country, now);
    const tally = await store.countryTally(country, now);
    if (!isPumped(tally, judgedFrom.country)) return;
    if (!(await store.claimAlarm(country, now))) return;
    log.warn(
      { country, ...tally, window_seconds: windowMs / second },
      'few codes to this country are verified',
    );
  };

  return {
    count: async (messages) => {
      const byCountry = Map.groupBy(messages, ({ country }) => country);
      await Promise.all(
        [...byCountry].map(async ([country, some]) => {
          await store.addToCountry(country, some);
          await look(country);
        }),
      );
    },
  };
};

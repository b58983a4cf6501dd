// The settings operators may change while everything runs: the environment's value holds where they said nothing.
import type { Database } from '../infra/mysql.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import { type Remembered, remember } from './settings.ts';
import { createPlatformStore, type PlatformName, type PlatformStore } from './store.ts';

export type Platform = Pick<Remembered<unknown>, 'refresh' | 'start' | 'stop'> & {
  guardMode(): Config['fraudGuard'];
  /** Countries the shared number serves; empty: all. */
  sharedCountries(): ReadonlySet<string>;
  store: PlatformStore;
};

const guardModes: readonly string[] = ['off', 'shadow', 'enforce'];

export const createPlatform = (deps: {
  db: Database;
  config: Pick<Config, 'fraudGuard' | 'sharedCountries'>;
  revocations: Pick<Revocations, 'epoch'>;
  clock: Clock;
  log: Log;
}): Platform => {
  const { db, config } = deps;
  const store = createPlatformStore(db);
  const read = async () => {
    const said = await store.all();
    const mode = said.get('fraud_guard');
    const countries = said.get('shared_countries') ?? config.sharedCountries;
    return {
      guardMode: guardModes.includes(mode ?? '')
        ? (mode as Config['fraudGuard'])
        : config.fraudGuard,
      sharedCountries: new Set(countries.split(',').filter(Boolean)),
    };
  };
  const first = {
    guardMode: config.fraudGuard,
    sharedCountries: new Set(config.sharedCountries.split(',').filter(Boolean)),
  };
  const { now, refresh, start, stop } = remember(deps, first, read);
  return {
    ...{ store, refresh, start, stop },
    guardMode: () => now().guardMode,
    sharedCountries: () => now().sharedCountries,
  };
};

/** Sets a value for all processes, within a second; null gives the word back to the environment. */
export const setPlatform = async (
  deps: { platform: Platform; revocations: Pick<Revocations, 'announce'>; clock: Clock },
  name: PlatformName,
  value: string | null,
): Promise<void> => {
  await deps.platform.store.set(name, value, deps.clock.now());
  await deps.revocations.announce();
  await deps.platform.refresh();
};

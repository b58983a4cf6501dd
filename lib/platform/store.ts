// What operators have set for the whole platform, in MySQL.
import { changeKnown } from '../accounts/epoch-store.ts';
import type { Database } from '../infra/mysql.ts';

/** fraud_guard: off, shadow or enforce. shared_countries: two letters each, with commas; empty: all. */
export type PlatformName = 'fraud_guard' | 'shared_countries';

export type PlatformStore = ReturnType<typeof createPlatformStore>;

export const createPlatformStore = (db: Database) => ({
  all: async (): Promise<Map<PlatformName, string>> => {
    const rows = await db<Record<string, unknown>>('platform_settings');
    return new Map(rows.map((row) => [String(row.name) as PlatformName, String(row.value)]));
  },

  /** Sets a value; null takes it away, and the environment's holds again. */
  set: (name: PlatformName, value: string | null, now: number): Promise<void> =>
    changeKnown(db, undefined, async (trx) => {
      const settings = trx('platform_settings');
      if (value === null) await settings.where({ name }).delete();
      else {
        const values = { value, changed_at: now };
        await settings
          .insert({ name, ...values })
          .onConflict()
          .merge(values);
      }
    }),
});

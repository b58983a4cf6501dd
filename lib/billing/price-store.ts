// Prices and switches in MySQL: what a destination costs whom, and what is paused.
import { changeKnown } from '../accounts/epoch-store.ts';
import type { Database } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

/** What the platform asks for a country and what it pays. */
export type PlatformPrice = {
  country: string;
  /** Null: known, and not sold. */
  priceMicros: number | null;
  costMicros: number;
};

/** `channel:…` and `number:…` are those of lib/sender/pauses.ts. */
export type SwitchName = 'shared_number' | 'trial' | `channel:${string}` | `number:${string}`;

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const pricing = (db: Database) => ({
  /** The account's own prices (micro-USD) by country, in the order of countries. */
  own: async (accountId: string): Promise<Map<string, number>> => {
    const rows = await db<Row>('account_prices')
      .where({ account_id: idBytes(accountId) })
      .orderBy('country');
    return new Map(rows.map((row) => [String(row.country), Number(row.price_micros)]));
  },

  /** Every stored price of the platform, by country. */
  platform: async (): Promise<PlatformPrice[]> => {
    const rows = await db<Row>('prices').orderBy('country');
    return rows.map((row) => ({
      country: String(row.country),
      priceMicros: numberOrNull(row.price_micros),
      costMicros: Number(row.cost_micros),
    }));
  },

  setPrice: (
    country: string,
    { priceMicros, costMicros }: { priceMicros: number | null; costMicros: number },
  ): Promise<void> =>
    changeKnown(db, undefined, async (trx) => {
      const values = { price_micros: priceMicros, cost_micros: costMicros };
      await trx('prices')
        .insert({ country, ...values })
        .onConflict()
        .merge(values);
    }),

  /** The country costs what every other does again; false when it did already. */
  removePrice: (country: string): Promise<boolean> =>
    changeKnown(
      db,
      undefined,
      async (trx) => (await trx('prices').where({ country }).delete()) > 0,
    ),

  setOverride: (accountId: string, country: string, price: number | null): Promise<void> =>
    changeKnown(db, accountId, async (trx) => {
      const key = { account_id: idBytes(accountId), country };
      if (price === null) await trx('account_prices').where(key).delete();
      else {
        const values = { price_micros: price };
        await trx('account_prices')
          .insert({ ...key, ...values })
          .onConflict()
          .merge(values);
      }
    }),
});

const switching = (db: Database) => ({
  /** Names of what is paused on the whole platform. */
  paused: async (): Promise<Set<SwitchName>> => {
    const rows = await db<Row>('switches').where({ paused: true });
    return new Set(rows.map((row) => String(row.name) as SwitchName));
  },

  /** What is paused, and since when (ms). */
  pausedSince: async (): Promise<Map<SwitchName, number>> => {
    const rows = await db<Row>('switches').where({ paused: true });
    return new Map(rows.map((row) => [String(row.name) as SwitchName, Number(row.changed_at)]));
  },

  /** Sets a switch; one that stands so already keeps the time since when, and then it answers false. */
  setPaused: (name: SwitchName, paused: boolean, now: number): Promise<boolean> =>
    changeKnown(db, undefined, async (trx) => {
      const before = await trx<Row>('switches').where({ name }).forUpdate().first();
      // In this order: the second assignment would change what the first one compares.
      const changedAt = trx.raw('IF(paused = ?, changed_at, ?)', [paused, now]);
      await trx('switches')
        .insert({ name, paused, changed_at: now })
        .onConflict()
        .merge({ changed_at: changedAt, paused });
      return Boolean(before?.paused) !== paused;
    }),

  /** Keeps an account off the shared number, or lets it on again; false when that is so already. */
  setSharedPaused: (accountId: string, paused: boolean): Promise<boolean> =>
    changeKnown(db, accountId, async (trx) => {
      const account = trx('accounts').where({ id: idBytes(accountId) });
      return (
        (await account.whereNot({ shared_paused: paused }).update({ shared_paused: paused })) === 1
      );
    }),
});

export type PriceStore = ReturnType<typeof createPriceStore>;

export const createPriceStore = (db: Database) => ({ ...pricing(db), ...switching(db) });

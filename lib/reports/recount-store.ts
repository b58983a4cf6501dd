// The nightly recount in MySQL: whose turn it is, and which rollups differ from what the messages come to now.
import { asOfOneMoment, type Database, withLockRetry } from '../infra/mysql.ts';
import { idText } from '../kernel/ids.ts';
import { addingSql, measures } from './measures.ts';
import { countHour } from './rollup-store.ts';
import { everyAccount } from './whose.ts';

type Row = Record<string, unknown>;

/** A bucket that is not what it should be. */
export type Suspect = { accountId: string; hour: number };

const hoursPerDay = 24;
const names = ['account_id', 'mode', 'channel', 'country'] as const;

const keyOf = (row: Row): string =>
  [idText(row.account_id as Buffer), row.mode, row.channel, row.country].join(' ');

/** Each row of counts by what it is of. */
const byKey = (rows: readonly Row[]): Map<string, string> =>
  new Map(rows.map((row) => [keyOf(row), measures.map((name) => Number(row[name])).join(' ')]));

/** The accounts of which two records differ, and how many rows were compared. */
const compare = (left: readonly Row[], right: readonly Row[]) => {
  const [one, other] = [byKey(left), byKey(right)];
  const keys = new Set([...one.keys(), ...other.keys()]);
  const differing = [...keys].filter((key) => one.get(key) !== other.get(key));
  const accounts = new Set(differing.map((key) => key.slice(0, everyAccount.length)));
  return { accounts: [...accounts], compared: keys.size };
};

const asRow = ([account_id, mode, , channel, country, ...counts]: unknown[]): Row => ({
  ...{ account_id, mode, channel, country },
  ...Object.fromEntries(measures.map((name, index) => [name, counts[index]])),
});

export type RecountStore = ReturnType<typeof createRecountStore>;

export const createRecountStore = (db: Database) => ({
  /** True for one process per day (days since 1970), or for the next one when that did not end by `until` (ms). */
  claim: async (day: number, now: number, until: number): Promise<boolean> => {
    const changed = await withLockRetry(() =>
      db('rollup_state')
        .where({ id: 1 })
        .where('recounted_day', '<', day)
        .where('claimed_until', '<=', now)
        .update({ claimed_until: until }),
    );
    return changed === 1;
  },

  /** Leaves what the recount of a day found. */
  finish: async (given: { day: number; at: number; compared: number; drifted: number }) => {
    const { day, at, compared, drifted } = given;
    await withLockRetry(() =>
      db.raw(
        `UPDATE rollup_state SET recounted_day = ?, claimed_until = 0, recounted_at = ?, compared = ?,
         drifted = drifted + ? WHERE id = 1`,
        [day, at, compared, drifted],
      ),
    );
  },

  /**
   * Compares one hour of all accounts, and its day after its last hour, as one moment sees them. What is marked is
   * left out: it is to be counted anyway.
   */
  compareHour: async (hour: number): Promise<{ suspects: Suspect[]; compared: number }> =>
    asOfOneMoment(db, async (trx) => {
      const marked = await trx<Row>('rollup_marks').where({ hour }).distinct('account_id');
      const counted = (await countHour(trx, hour, [everyAccount])).map(asRow);
      const stored: Row[] = await trx('rollup_hours').where({ hour });
      const found = compare(counted, stored);
      const pending = new Set(marked.map((row) => idText(row.account_id as Buffer)));
      const accounts = pending.has(everyAccount)
        ? []
        : found.accounts.filter((accountId) => !pending.has(accountId));
      return {
        suspects: accounts.map((accountId) => ({ accountId, hour })),
        compared: found.compared,
      };
    }),

  /** Compares one day of all accounts with the sum of its hours. */
  compareDay: async (day: number): Promise<{ suspects: Suspect[]; compared: number }> =>
    asOfOneMoment(db, async (trx) => {
      const from = day * hoursPerDay;
      const [summed] = (await trx.raw(
        `SELECT ${names.join(', ')}, ${addingSql} FROM rollup_hours
         WHERE hour >= ? AND hour < ? GROUP BY ${names.join(', ')} ORDER BY NULL`,
        [from, from + hoursPerDay],
      )) as [Row[]];
      const stored: Row[] = await trx('rollup_days').where({ day });
      const { accounts, compared } = compare(summed, stored);
      return { suspects: accounts.map((accountId) => ({ accountId, hour: from })), compared };
    }),

  /** How the rollups are: for metrics. `oldest` is the slot of the oldest mark, `drifted` counts over all nights. */
  state: async () => {
    const [row] = await db<Row>('rollup_state').where({ id: 1 });
    const [marks] = await db<Row>('rollup_marks').count({ count: '*' }).min({ oldest: 'slot' });
    return {
      marks: Number(marks?.count ?? 0),
      oldest: marks?.oldest == null ? undefined : Number(marks.oldest),
      recountedAt: row?.recounted_at == null ? undefined : Number(row.recounted_at),
      compared: Number(row?.compared ?? 0),
      drifted: Number(row?.drifted ?? 0),
    };
  },
});

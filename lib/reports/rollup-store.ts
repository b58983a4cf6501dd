// Rollups in MySQL: marks of what is to be counted again, and counting it from the messages, an hour as a whole.
import { type Database, type Transaction, withLockRetry } from '../infra/mysql.ts';
import { hour as hourMs } from '../kernel/clock.ts';
import { idAt, idBytes } from '../kernel/ids.ts';
import { dueMarks, type Mark, removeMarks } from './marks.ts';
import { addingSql, countingSql, measures } from './measures.ts';
import { createMonthStore, replaceMonth } from './month-store.ts';
import { monthOf } from './months.ts';
import type { Heard } from './rules.ts';
import { everyAccount, whoseOf } from './whose.ts';

type Row = Record<string, unknown>;

const hoursPerDay = 24;
const rowsPerInsert = 500;
const columns = ['account_id', 'mode', 'hour', 'channel', 'country', ...measures];

const boundsOf = (hour: number): [Buffer, Buffer] => [
  idBytes(idAt(hour * hourMs)),
  idBytes(idAt((hour + 1) * hourMs)),
];

/** What the messages of one hour come to, counted now; in the order of `columns`. */
export const countHour = async (
  db: Database | Transaction,
  hour: number,
  accounts: readonly string[],
): Promise<unknown[][]> => {
  const whose = whoseOf(accounts);
  const [rows] = (await db.raw(
    `SELECT account_id, mode, channel, country, ${countingSql} FROM messages
     WHERE id >= ? AND id < ? ${whose.sql} GROUP BY account_id, mode, channel, country ORDER BY NULL`,
    [...boundsOf(hour), ...(whose.bindings as unknown as Buffer[])],
  )) as [Row[]];
  return rows.map((row) => [
    ...[row.account_id, row.mode, hour, row.channel ?? 'none', row.country],
    ...measures.map((name) => row[name]),
  ]);
};

const replaceHour = async (trx: Transaction, hour: number, accounts: readonly string[]) => {
  const counted = await countHour(trx, hour, accounts);
  const whose = whoseOf(accounts);
  await trx.raw(`DELETE FROM rollup_hours WHERE hour = ? ${whose.sql}`, [
    hour,
    ...(whose.bindings as unknown as Buffer[]),
  ]);
  for (let from = 0; from < counted.length; from += rowsPerInsert) {
    const rows = counted.slice(from, from + rowsPerInsert);
    await trx.raw(`INSERT INTO rollup_hours (${columns.join(', ')}) VALUES ?`, [
      rows as unknown as string,
    ]);
  }
};

const replaceDay = async (trx: Transaction, day: number, accounts: readonly string[]) => {
  const { sql, bindings } = whoseOf(accounts);
  const whose = bindings as unknown as Buffer[];
  await trx.raw(`DELETE FROM rollup_days WHERE day = ? ${sql}`, [day, ...whose]);
  await trx.raw(
    `INSERT INTO rollup_days (${columns.join(', ').replace('hour', 'day')})
     SELECT account_id, mode, ${day}, channel, country, ${addingSql} FROM rollup_hours
     WHERE hour >= ? AND hour < ? ${sql} GROUP BY account_id, mode, channel, country`,
    [day * hoursPerDay, (day + 1) * hoursPerDay, ...whose],
  );
};

const accountsBy = (marks: readonly Mark[], keyOf: (mark: Mark) => number) =>
  [...Map.groupBy(marks, keyOf)].map(
    ([key, some]) => [key, [...new Set(some.map(({ accountId }) => accountId))]] as const,
  );

/** Counts marked hours, then adds up their days, and their months as far as they are added up. */
const countAgain = async (trx: Transaction, marks: readonly Mark[], monthsUntil: number) => {
  for (const [hour, accounts] of accountsBy(marks, (mark) => mark.hour)) {
    await replaceHour(trx, hour, accounts);
  }
  for (const [day, accounts] of accountsBy(marks, ({ hour }) => Math.floor(hour / hoursPerDay))) {
    await replaceDay(trx, day, accounts);
  }
  for (const [month, accounts] of accountsBy(marks, ({ hour }) => monthOf(hour * hourMs))) {
    if (month < monthsUntil) await replaceMonth(trx, month, accounts);
  }
};

/** `monthsUntil`: earlier months are added up. */
export type Standing = Heard & { monthsUntil: number };

export type RollupStore = ReturnType<typeof createRollupStore>;

export const createRollupStore = (db: Database) => ({
  ...createMonthStore(db),

  /** Marks hours of accounts; a mark that is there already stays. */
  mark: async (marks: readonly Mark[]): Promise<void> => {
    const rows = marks.map(({ slot, accountId, hour }) => [slot, idBytes(accountId), hour]);
    await withLockRetry(() =>
      db.raw('INSERT IGNORE INTO rollup_marks (slot, account_id, hour) VALUES ?', [
        rows as unknown as string,
      ]),
    );
  },

  /**
   * Counts at most `limit` marked hours of accounts again, with their days, and takes all their marks away, all or
   * nothing: a crash leaves the marks. Counting is one process's at a time (the row it locks), or an older count could
   * overwrite a newer one. Answers how many marks are done; undefined while another process counts.
   */
  refresh: (given: { throughSlot: number; limit: number }): Promise<number | undefined> =>
    // What is read after the lock must be newer than the lock, and reading must lock no message.
    db.transaction(
      async (trx) => {
        const [turn] = await trx('rollup_state').where({ id: 1 }).forUpdate().skipLocked();
        if (turn === undefined) return undefined;
        const marks = await dueMarks(trx, given);
        // Messages of earlier hours are gone: their rollups stay as they are.
        const countable = marks.filter(({ hour }) => hour >= Number(turn.kept_from_hour));
        await countAgain(trx, countable, Number(turn.months_until));
        await removeMarks(trx, marks);
        return marks.length;
      },
      { isolationLevel: 'read committed' },
    ),

  /** Everything that happened before `at` (ms) is marked. */
  hear: async (at: number): Promise<void> => {
    await db.raw(
      `INSERT INTO rollup_heard (id, heard_at) VALUES (1, ?)
       ON DUPLICATE KEY UPDATE heard_at = GREATEST(heard_at, VALUES(heard_at))`,
      [at],
    );
  },

  /** What reading an account's figures goes by. */
  standing: async (accountId: string): Promise<Standing> => {
    const [[row]] = (await db.raw(
      `SELECT months_until, (SELECT heard_at FROM rollup_heard WHERE id = 1) AS heard,
         (SELECT MIN(slot) FROM rollup_marks WHERE account_id IN (?)) AS oldest
       FROM rollup_state WHERE id = 1`,
      [[idBytes(accountId), idBytes(everyAccount)] as unknown as Buffer],
    )) as [Row[]];
    return {
      oldest: row?.oldest == null ? undefined : Number(row.oldest),
      heard: row?.heard == null ? undefined : Number(row.heard),
      monthsUntil: Number(row?.months_until ?? 0),
    };
  },

  /** The slot of the oldest mark that concerns an account; undefined when nothing is marked. */
  oldestMark: async (accountId: string): Promise<number | undefined> => {
    const [row] = await db<Row>('rollup_marks')
      .whereIn('account_id', [idBytes(accountId), idBytes(everyAccount)])
      .min({ slot: 'slot' });
    return row?.slot === null || row?.slot === undefined ? undefined : Number(row.slot);
  },
});

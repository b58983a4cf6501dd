// Months in MySQL: added up from their days when they are over, and again when a day of theirs is counted again.
import { type Database, type Transaction, withLockRetry } from '../infra/mysql.ts';
import { day } from '../kernel/clock.ts';
import { addingSql, measures } from './measures.ts';
import { monthOf, monthStart } from './months.ts';
import { everyAccount, type Whose, whoseOf } from './whose.ts';

const columns = ['account_id', 'mode', 'month', 'channel', 'country', ...measures].join(', ');

/** Adds up a month of these accounts anew. */
export const replaceMonth = async (
  trx: Transaction,
  month: number,
  accounts: readonly string[],
): Promise<void> => {
  const { sql, bindings }: Whose = whoseOf(accounts);
  const whose = bindings as unknown as Buffer[];
  await trx.raw(`DELETE FROM rollup_months WHERE month = ? ${sql}`, [month, ...whose]);
  await trx.raw(
    `INSERT INTO rollup_months (${columns})
     SELECT account_id, mode, ${month}, channel, country, ${addingSql} FROM rollup_days
     WHERE day >= ? AND day < ? ${sql} GROUP BY account_id, mode, channel, country`,
    [monthStart(month) / day, monthStart(month + 1) / day, ...whose],
  );
};

export const createMonthStore = (db: Database) => ({
  /**
   * Adds up one month that is not yet, before `until`; answers whether more may be left. Whoever counts hours has its
   * turn before or after: what it counts again in a month that is added up it adds up again.
   */
  closeMonth: (until: number): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const [turn] = await trx('rollup_state').where({ id: 1 }).forUpdate();
        const closed = Number(turn.months_until);
        if (closed >= until) return false;
        const [first] = await trx<{ day: number | null }>('rollup_days').min({ day: 'day' });
        // Without any day there is nothing to add up.
        const earliest = first?.day == null ? until : monthOf(Number(first.day) * day);
        const month = Math.max(closed, earliest);
        if (month < until) await replaceMonth(trx, month, [everyAccount]);
        const next = Math.min(month + 1, until);
        await trx('rollup_state').where({ id: 1 }).update({ months_until: next });
        return next < until;
      }),
    ),
});

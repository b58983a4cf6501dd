// Days of accounts in MySQL, as the safety floor judges them.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { type Database, isDuplicateKey } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idAt, idBytes, idText } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import type { Plan } from '../messages/rules.ts';

type Row = Record<string, unknown>;

export type FloorDay = {
  accountId: string;
  settled: number;
  verified: number;
  lowDays: number;
  plan: Plan;
};

/** `at` (ms): when it was judged; a switch holds from then on. */
export type FloorJudgement = FloorDay & { date: string; switched: boolean; at: number };

export type FloorStore = ReturnType<typeof createFloorStore>;

export const createFloorStore = (db: Database) => ({
  /** The last UTC day that was judged for all accounts. */
  lastRound: async (): Promise<string | undefined> => {
    const row = await db<Row>('floor_rounds').orderBy('date', 'desc').first('date');
    return row === undefined ? undefined : String(row.date);
  },

  /** Every account of the day is judged. */
  endRound: async (date: string, at: number): Promise<void> => {
    await db('floor_rounds').insert({ date, judged_at: at }).onConflict().ignore();
  },

  /** The day of every account that pays per success, or is held at per_message by the floor, and is not judged yet. */
  unjudged: async (date: string, from: number, to: number): Promise<FloorDay[]> => {
    const [rows] = (await db.raw(
      `SELECT m.account_id, a.billing_plan, a.floor_low_days, COUNT(*) AS settled,
         SUM(m.status = 'verified') AS verified
       FROM messages m JOIN accounts a ON a.id = m.account_id
       LEFT JOIN floor_days f ON f.account_id = m.account_id AND f.date = ?
       WHERE m.id >= ? AND m.id < ? AND m.mode = 'live' AND m.accepted_at IS NOT NULL
         AND (a.billing_plan = 'pay_per_success' OR (a.billing_plan = 'per_message' AND a.floor_since IS NOT NULL))
         AND f.account_id IS NULL
       GROUP BY m.account_id, a.billing_plan, a.floor_low_days`,
      [date, idBytes(idAt(from)), idBytes(idAt(to))],
    )) as [Row[]];
    return rows.map((row) => ({
      accountId: idText(row.account_id as Buffer),
      settled: Number(row.settled),
      verified: Number(row.verified),
      lowDays: Number(row.floor_low_days),
      plan: row.billing_plan as Plan,
    }));
  },

  /** Writes a judgement with what follows from it and is to be told; false when the day was judged before. */
  record: async (given: FloorJudgement, told: readonly EventWire[]): Promise<boolean> => {
    const account_id = idBytes(given.accountId);
    const { date, settled, verified, plan, switched, lowDays, at } = given;
    try {
      await db.transaction(async (trx) => {
        const row = { account_id, date, settled, verified, low_days: lowDays, plan, switched };
        await trx('floor_days').insert(row);
        const since = plan === 'per_message' ? at : null;
        await trx('accounts')
          .where({ id: account_id })
          .update({
            floor_low_days: lowDays,
            ...(switched ? { billing_plan: plan, floor_since: since } : {}),
          });
        await insertNews(trx, told);
        if (switched) await advanceEpoch(trx, given.accountId);
      });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  },

  /** Since when (ms) the floor holds an account at per_message, and how many low days in a row it has. */
  standing: async (accountId: string): Promise<{ since: number | null; lowDays: number }> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(accountId) })
      .first('floor_since', 'floor_low_days');
    const since = row?.floor_since ?? null;
    return {
      since: since === null ? null : Number(since),
      lowDays: Number(row?.floor_low_days ?? 0),
    };
  },

  /** The last judged days of an account, newest first. */
  recent: async (accountId: string, limit: number) => {
    const rows = await db<Row>('floor_days')
      .where({ account_id: idBytes(accountId) })
      .orderBy('date', 'desc')
      .limit(limit);
    return rows.map((row) => ({
      date: String(row.date),
      settled: Number(row.settled),
      verified: Number(row.verified),
      lowDays: Number(row.low_days),
    }));
  },
});

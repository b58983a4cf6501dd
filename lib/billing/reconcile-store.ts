// What runs the checks of the books in MySQL, and finds what was never charged.
import type { Database } from '../infra/mysql.ts';
import { day, hour } from '../kernel/clock.ts';
import { idAt, idBytes, idText, idTime } from '../kernel/ids.ts';
import { checks, totpWithLedger } from './checks-store.ts';

type Row = { account_id: Buffer; detail: string };

export type CheckName = keyof typeof checks;

export type ReconcileStore = ReturnType<typeof createReconcileStore>;

export const createReconcileStore = (db: Database) => ({
  checks: Object.keys(checks) as CheckName[],

  /** What a check finds, of everything before `through` (ms). */
  run: async (
    name: CheckName,
    through: number,
  ): Promise<{ accountId: string; detail: string }[]> => {
    // Messages from before are gone with their retention; what they were charged stays.
    const kept = await db('rollup_state').where({ id: 1 }).first('kept_from_hour');
    const keptFrom = Number(kept?.kept_from_hour ?? 0) * hour;
    const given = { through, id: idBytes(idAt(through)), kept: idBytes(idAt(keptFrom)), keptFrom };
    const [rows] = (await db.raw(checks[name], given)) as [Row[]];
    return rows.map((row) => ({ accountId: idText(row.account_id), detail: row.detail }));
  },

  /** TOTP verifications of the last day, up to `through` (ms), whose event was lost before it was charged. */
  forgottenTotp: async (through: number, limit: number) => {
    const given = { id: idBytes(idAt(through)), since: idBytes(idAt(through - day)), limit };
    const [rows] = (await db.raw(
      `SELECT t.account_id, t.enrollment_id, t.step, t.price_micros, t.id
       ${totpWithLedger} AND t.id < :id AND l.seq IS NULL AND t.id > :since LIMIT :limit`,
      given,
    )) as [Record<string, unknown>[]];
    return rows.map((row) => ({
      accountId: idText(row.account_id as Buffer),
      enrollmentId: idText(row.enrollment_id as Buffer),
      step: Number(row.step),
      priceMicros: Number(row.price_micros),
      at: idTime(idText(row.id as Buffer)),
    }));
  },

  countAccounts: async (): Promise<number> => {
    const [row] = await db('accounts').count({ count: '*' });
    return Number(row?.count ?? 0);
  },
});

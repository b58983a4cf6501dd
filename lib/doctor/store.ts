// What the doctor asks MySQL.
import type { Database } from '../infra/mysql.ts';

type Row = Record<string, unknown>;

const firstOf = async (db: Database, sql: string, values: number[] = []): Promise<Row> => {
  const [rows] = (await db.raw(sql, values)) as [Row[]];
  return rows[0] ?? {};
};

/** Reads only; every call throws what the driver throws. */
export const createDoctorStore = (db: Database) => ({
  version: async (): Promise<string> => String((await firstOf(db, 'SELECT VERSION() AS v')).v),

  /** The server's clock, ms. */
  now: async (): Promise<number> =>
    Math.round(Number((await firstOf(db, 'SELECT UNIX_TIMESTAMP(NOW(3)) * 1000 AS t')).t)),

  /** The names of the migrations that ran; none when the table is missing. */
  migrations: async (): Promise<string[]> => {
    if (!(await db.schema.hasTable('migrations'))) return [];
    return (await db('migrations').select('name')).map(({ name }: Row) => String(name));
  },

  /** Webhook endpoints that were given up, and those that have taken nothing since `before` (ms). */
  endpoints: async (before: number): Promise<{ all: number; givenUp: number; failing: number }> => {
    const row = await firstOf(
      db,
      `SELECT COUNT(*) AS total, SUM(webhook_disabled_at IS NOT NULL) AS given_up,
        SUM(webhook_disabled_at IS NULL AND webhook_failing_since < ?) AS failing
        FROM accounts WHERE webhook_url IS NOT NULL`,
      [before],
    );
    return {
      all: Number(row.total ?? 0),
      givenUp: Number(row.given_up ?? 0),
      failing: Number(row.failing ?? 0),
    };
  },
});

export type DoctorStore = ReturnType<typeof createDoctorStore>;

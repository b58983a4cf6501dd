// Partitions in MySQL: which there are, adding some and dropping some, without ever holding up the traffic for long.
import type { Database } from '../infra/mysql.ts';
import { addSql, dropSql, type Partitioned } from '../kernel/partitions.ts';

/** A change of a table waits for the statements on it, and those behind it wait for the change: not for longer. */
const waitSeconds = 1;

export type RetentionStore = ReturnType<typeof createRetentionStore>;

/** Named after the database: a lock is the whole server's. */
const lockName = "CONCAT('tessera-partitions-', LEFT(SHA2(DATABASE(), 256), 16))";

export const createRetentionStore = (db: Database) => {
  const withConnection = async <T>(
    work: (run: (sql: string) => Promise<unknown>) => Promise<T>,
  ) => {
    const connection = await db.client.acquireConnection();
    try {
      return await work(async (sql) => await db.raw(sql).connection(connection));
    } finally {
      await db.client.releaseConnection(connection);
    }
  };

  const alter = (sql: string): Promise<void> =>
    withConnection(async (run) => {
      await run(`SET SESSION lock_wait_timeout = ${waitSeconds}`);
      try {
        await run(sql);
      } finally {
        await run('SET SESSION lock_wait_timeout = DEFAULT').catch(() => undefined);
      }
    });

  return {
    /** Does the work unless another process is at it; false when one is. */
    alone: (work: () => Promise<void>): Promise<boolean> =>
      withConnection(async (run) => {
        const [[row]] = (await run(`SELECT GET_LOCK(${lockName}, 0) AS won`)) as [
          { won: unknown }[],
        ];
        if (Number(row?.won) !== 1) return false;
        try {
          await work();
          return true;
        } finally {
          await run(`SELECT RELEASE_LOCK(${lockName})`).catch(() => undefined);
        }
      }),

    /** Names of a table's partitions, oldest first. */
    names: async (table: string): Promise<string[]> => {
      const [rows] = (await db.raw(
        `SELECT PARTITION_NAME AS name FROM information_schema.PARTITIONS
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND PARTITION_NAME IS NOT NULL
         ORDER BY PARTITION_ORDINAL_POSITION`,
        [table],
      )) as [{ name: string }[]];
      return rows.map(({ name }) => name);
    },

    add: (table: Partitioned, mondays: readonly number[]): Promise<void> =>
      alter(addSql(table, mondays)),

    drop: (table: Partitioned, names: readonly string[]): Promise<void> =>
      alter(dropSql(table, names)),

    /** Says, for good, that messages of earlier hours (since 1970) are gone; who counts right now ends first. */
    keepFrom: async (hour: number): Promise<void> => {
      await db('rollup_state')
        .where({ id: 1 })
        .where('kept_from_hour', '<', hour)
        .update({ kept_from_hour: hour });
    },
  };
};

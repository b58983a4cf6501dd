// How the database would run a statement, as rows that MariaDB and MySQL give alike.
import type { Database } from '../../lib/infra/mysql.ts';

export type PlanRow = {
  select_type: string;
  table: string | null;
  partitions?: string;
  type: string | null;
  key: string | null;
  /** How many rows it expects to read. */
  rows: number | null;
  Extra: string | null;
};

/** The plan of a statement, a row for each table it reads. */
export const explain = async (
  db: Database,
  sql: string,
  bindings: readonly unknown[],
): Promise<PlanRow[]> => {
  const [[server]] = (await db.raw('SELECT VERSION() AS version')) as [[{ version: string }]];
  // MySQL 9 draws a tree unless told otherwise; MariaDB knows no other word for its table.
  const form = server.version.includes('MariaDB') ? 'PARTITIONS' : 'FORMAT=TRADITIONAL';
  const [plan] = (await db.raw(`EXPLAIN ${form} ${sql}`, bindings as never[])) as [PlanRow[]];
  return plan;
};

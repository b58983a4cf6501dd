// MySQL: one knex pool per process, and what may be learnt from its errors.
import knex, { type Knex } from 'knex';
import { format, type SqlValue } from 'mysql2';

export type Database = Knex;
export type Transaction = Knex.Transaction;

const nothing = () => undefined;
const timezone = 'Z';

type Session = { query(sql: string, done: (error: Error | null) => void): void };

// Locks are taken on rows and on nothing between them; said once, so that no transaction has to say it.
const prepare = (session: Session, done: (error: Error | null, session: Session) => void): void => {
  session.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', (error) =>
    done(error, session),
  );
};

/** A statement that is written out has no places to fill: it need not be read through for them, however long it is. */
const fill = (sql: string, values?: SqlValue[]): string =>
  values === undefined || values.length === 0 ? sql : format(sql, values, false, timezone);

/** A pool of at most `pool` connections to the database in `url`; it connects when first used. */
export const createMysql = (options: { url: string; pool: number }): Database => {
  const url = new URL(options.url);
  return knex({
    client: 'mysql2',
    connection: {
      host: url.hostname,
      port: Number(url.port || 3306),
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database: url.pathname.slice(1),
      timezone,
      charset: 'utf8mb4',
      connectTimeout: 3_000,
      enableKeepAlive: true,
      queryFormat: fill,
      // None are prepared: knex sends texts. Room for mysql2's 16,000 would cost each connection half a megabyte.
      maxPreparedStatements: 1,
    },
    pool: { min: 0, max: options.pool, afterCreate: prepare },
    acquireConnectionTimeout: 3_000,
    // knex prints connection errors by itself otherwise, with whatever they contain.
    log: { warn: nothing, error: nothing, debug: nothing, deprecate: nothing },
  });
};

/**
 * Reads in several statements what was so at one moment, the first one's: by itself each statement sees what is
 * committed when it begins.
 */
export const asOfOneMoment = <T>(
  db: Database,
  read: (trx: Transaction) => Promise<T>,
): Promise<T> => db.transaction(read, { isolationLevel: 'repeatable read' });

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';

export const isDuplicateKey = (error: unknown): boolean => codeOf(error) === 'ER_DUP_ENTRY';

const passing = new Set(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT']);

/** Runs `work` again when the database asked for it (deadlock, lock wait), at most `times` times in all. */
export const withLockRetry = async <T>(work: () => Promise<T>, times = 4): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (times <= 1 || !passing.has(codeOf(error))) throw error;
    return withLockRetry(work, times - 1);
  }
};

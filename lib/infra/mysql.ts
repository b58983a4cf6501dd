// MySQL: one knex pool per process, and what may be learnt from its errors.
import { readFileSync } from 'node:fs';
import knex, { type Knex } from 'knex';
import { format, type SqlValue } from 'mysql2';
import {
  type MysqlAddress,
  MysqlAddressError,
  parseMysqlAddress,
} from '../kernel/mysql-address.ts';

export type Database = Knex;
export type Transaction = Knex.Transaction;

const nothing = () => undefined;
const timezone = 'Z';

type Session = { query(sql: string, done: (error: Error | null) => void): void };

// What a statement means must not depend on how the server is set: under NO_BACKSLASH_ESCAPES the driver's escapes
// would end a text early, under ANSI_QUOTES a quoted text would be a column. Said once per connection.
const preparations = [
  `SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci,
    SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION',
    SESSION time_zone = '+00:00'`,
  // Locks are taken on rows and on nothing between them; said once, so that no transaction has to say it.
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
];

const prepare = (session: Session, done: (error: Error | null, session: Session) => void): void => {
  const run = ([sql, ...rest]: readonly string[]): void => {
    if (sql === undefined) {
      done(null, session);
      return;
    }
    session.query(sql, (error) => (error ? done(error, session) : run(rest)));
  };
  run(preparations);
};

/** A statement that is written out has no places to fill: it need not be read through for them, however long it is. */
const fill = (sql: string, values?: SqlValue[]): string =>
  values === undefined || values.length === 0 ? sql : format(sql, values, false, timezone);

const readCa = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new MysqlAddressError(`MYSQL_URL: the ssl-ca file ${file} cannot be read`, {
      cause: error,
    });
  }
};

/** What the driver is to check of the server's certificate; undefined: no encryption. */
const tlsOptions = ({ mode, caFile }: MysqlAddress['tls']) =>
  mode === 'DISABLED'
    ? undefined
    : {
        rejectUnauthorized: mode.startsWith('VERIFY_'),
        verifyIdentity: mode === 'VERIFY_IDENTITY',
        ...(caFile === undefined ? {} : { ca: readCa(caFile) }),
      };

const connectionOptions = ({ host, port, user, password, database, tls }: MysqlAddress) => {
  const ssl = tlsOptions(tls);
  return {
    host,
    port,
    user,
    password,
    database,
    timezone,
    charset: 'utf8mb4',
    connectTimeout: 3_000,
    enableKeepAlive: true,
    queryFormat: fill,
    // None are prepared: knex sends texts. Room for mysql2's 16,000 would cost each connection half a megabyte.
    maxPreparedStatements: 1,
    ...(ssl === undefined ? {} : { ssl }),
  };
};

type RawClient = { acquireRawConnection(): Promise<unknown> };

/** For ssl-mode=PREFERRED: a server that offers no TLS is connected to without. */
const allowPlainText = (client: RawClient, address: MysqlAddress): void => {
  const encrypted = client.acquireRawConnection.bind(client);
  const plain = connectionOptions({ ...address, tls: { mode: 'DISABLED', caFile: undefined } });
  const withoutTls = new Proxy(client, {
    get: (target, name) => (name === 'connectionSettings' ? plain : Reflect.get(target, name)),
  });
  const unencrypted = client.acquireRawConnection.bind(withoutTls);
  client.acquireRawConnection = () =>
    encrypted().catch((error: unknown) => {
      if (codeOf(error) !== 'HANDSHAKE_NO_SSL_SUPPORT') throw error;
      return unencrypted();
    });
};

/**
 * A pool of at most `pool` connections to the database in `url`; it connects when first used.
 * @throws MysqlAddressError for an address that cannot be used, or an ssl-ca file that cannot be read
 */
export const createMysql = (options: { url: string; pool: number }): Database => {
  const address = parseMysqlAddress(options.url);
  const db = knex({
    client: 'mysql2',
    connection: connectionOptions(address),
    pool: { min: 0, max: options.pool, afterCreate: prepare },
    acquireConnectionTimeout: 3_000,
    // knex prints connection errors by itself otherwise, with whatever they contain.
    log: { warn: nothing, error: nothing, debug: nothing, deprecate: nothing },
  });
  if (address.tls.mode === 'PREFERRED') allowPlainText(db.client as RawClient, address);
  return db;
};

/**
 * Reads in several statements what was so at one moment, the first one's: by itself each statement sees what is
 * committed when it begins.
 */
export const asOfOneMoment = <T>(
  db: Database,
  read: (trx: Transaction) => Promise<T>,
): Promise<T> => db.transaction(read, { isolationLevel: 'repeatable read' });

/**
 * Whether a column of ASCII can hold the text. MySQL refuses to compare such a column with any other text, instead of
 * finding it unequal: whoever looks for a text that people typed asks this first.
 */
export const fitsAscii = (text: string): boolean => /^\p{ASCII}*$/u.test(text);

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

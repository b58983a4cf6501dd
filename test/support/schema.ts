// The tables as the migrations leave them: migrated once per server, then replayed in one statement for each test file.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';
import { createMysql } from '../../lib/infra/mysql.ts';
import { weekOf } from '../../lib/kernel/partitions.ts';
import { migrationSource } from '../../migrations/source.ts';
import { createDatabase, type TestDatabase } from './databases.ts';

/** Takes a database the whole way through the migrations, as the product does. */
export const migrate = async (url: string): Promise<void> => {
  const db = createMysql({ url, pool: 1 });
  try {
    await db.migrate.latest({ migrationSource, tableName: 'migrations' });
  } finally {
    await db.destroy();
  }
};

const root = resolve(import.meta.dirname, '../..');
const importedByMigrations = ['lib/kernel/partitions.ts', 'lib/kernel/ids.ts'];

/** Another one for other migrations, and for another week: the partitions begin with the present one. */
const version = (): string => {
  const folder = join(root, 'migrations');
  const files = readdirSync(folder).sort();
  const paths = [
    ...files.map((file) => join(folder, file)),
    ...importedByMigrations.map((file) => join(root, file)),
  ];
  const hash = createHash('sha256').update(`${weekOf(Date.now())}`);
  for (const path of paths) hash.update(path.slice(root.length)).update(readFileSync(path));
  return hash.digest('hex').slice(0, 16);
};

/** The statements that make what is in the connection's database. */
const dump = async (connection: Connection): Promise<string> => {
  const rowsOf = async (sql: string): Promise<string[][]> => {
    const [rows] = await connection.query<RowDataPacket[]>({ sql, rowsAsArray: true });
    return rows as unknown as string[][];
  };
  const statements = ['SET foreign_key_checks = 0'];
  for (const [table = ''] of await rowsOf('SHOW TABLES')) {
    const [[, create = ''] = []] = await rowsOf(`SHOW CREATE TABLE ${table}`);
    const rows = await rowsOf(`SELECT * FROM ${table}`);
    statements.push(create);
    if (rows.length > 0) statements.push(mysql.format(`INSERT INTO ${table} VALUES ?`, [rows]));
  }
  return [...statements, 'SET foreign_key_checks = 1'].join(';\n');
};

const connect = (url: string): Promise<Connection> =>
  mysql.createConnection({ uri: url, multipleStatements: true, dateStrings: true });

/** The statements that make what is in the database of an address. */
export const dumpOf = async (url: string): Promise<string> => {
  const connection = await connect(url);
  try {
    return await dump(connection);
  } finally {
    await connection.end();
  }
};

const makeDump = async (): Promise<string> => {
  const database = await createDatabase('schema');
  try {
    await migrate(database.url);
    return await dumpOf(database.url);
  } finally {
    await database.drop();
  }
};

const kept = 'tessera_test_schemas.dumps';

/** The dump that whoever came first made; the others wait for it. */
const readDump = async (connection: Connection): Promise<string> => {
  const id = version();
  const look = async (): Promise<string | undefined> => {
    const [rows] = await connection.query<RowDataPacket[]>(
      `SELECT statements FROM ${kept} WHERE id = ?`,
      [id],
    );
    return rows[0]?.statements as string | undefined;
  };
  const found = await look().catch(() => undefined);
  if (found !== undefined) return found;
  await connection.query('SELECT GET_LOCK(?, 120)', [kept]);
  try {
    await connection.query('CREATE DATABASE IF NOT EXISTS tessera_test_schemas');
    await connection.query(
      `CREATE TABLE IF NOT EXISTS ${kept} (id CHAR(16) PRIMARY KEY, statements LONGTEXT NOT NULL)
       CHARACTER SET utf8mb4`,
    );
    const meanwhile = await look();
    if (meanwhile !== undefined) return meanwhile;
    const made = await makeDump();
    await connection.query(`INSERT INTO ${kept} VALUES (?, ?)`, [id, made]);
    return made;
  } finally {
    await connection.query('SELECT RELEASE_LOCK(?)', [kept]);
  }
};

/** Makes a database whose name begins with `prefix` (letters, digits, _) and which is migrated. */
export const createMigratedDatabase = async (prefix: string): Promise<TestDatabase> => {
  const database = await createDatabase(prefix);
  const connection = await connect(database.url);
  try {
    await connection.query(await readDump(connection));
  } finally {
    await connection.end();
  }
  return database;
};

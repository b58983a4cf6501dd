// A database of its own for each test file.
import mysql from 'mysql2/promise';
import { testUrl, uniqueName } from './names.ts';

export type TestDatabase = {
  name: string;
  /** MySQL address of the database. */
  url: string;
  drop(): Promise<void>;
};

const run = async (statement: string): Promise<void> => {
  const connection = await mysql.createConnection(testUrl('TESSERA_TEST_MYSQL_URL').href);
  try {
    await connection.query(statement);
  } finally {
    await connection.end();
  }
};

/** Drops a database by name; a missing one is no error. */
export const dropDatabase = (name: string): Promise<void> => run(`DROP DATABASE IF EXISTS ${name}`);

/** Makes an empty utf8mb4 database whose name begins with `prefix` (letters, digits, _). */
export const createDatabase = async (prefix: string): Promise<TestDatabase> => {
  const name = uniqueName(prefix);
  await run(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const url = testUrl('TESSERA_TEST_MYSQL_URL');
  url.pathname = `/${name}`;
  return { name, url: url.href, drop: () => dropDatabase(name) };
};

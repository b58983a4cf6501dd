// The private MariaDB (or MySQL): own data, own user, loopback only.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { type Engine, type EngineContext, ownName } from './engine.ts';
import type { Programs } from './packages.ts';
import { runCommand } from './processes.ts';

const isRoot = (): boolean => process.getuid?.() === 0;

// Both servers refuse to run as root unless told so.
const asUser = (): string[] => (isRoot() ? ['--user=root'] : []);

const initialize = (programs: Programs, folder: string) => {
  const install = programs['mariadb-install-db'] ?? programs.mysql_install_db;
  if (!install) {
    const file = programs.mysqld ?? 'mysqld';
    return { file, args: ['--no-defaults', '--initialize-insecure', `--datadir=${folder}`] };
  }
  const args = ['--no-defaults', `--datadir=${folder}`, '--skip-test-db'];
  return { file: install, args: [...args, '--auth-root-authentication-method=normal'] };
};

// Run by the server at every start, so a lost password file heals itself. One statement a line.
const startupSql = (password: string): string =>
  [
    `CREATE USER IF NOT EXISTS '${ownName}'@'%' IDENTIFIED BY '${password}';`,
    `ALTER USER '${ownName}'@'%' IDENTIFIED BY '${password}';`,
    `GRANT ALL PRIVILEGES ON *.* TO '${ownName}'@'%' WITH GRANT OPTION;`,
    `ALTER USER 'root'@'localhost' IDENTIFIED BY '${password}';`,
    `CREATE DATABASE IF NOT EXISTS ${ownName} CHARACTER SET utf8mb4;`,
    '',
  ].join('\n');

const makeData = async (
  { programs, folder, temporary }: { programs: Programs; folder: string; temporary: string },
  signal: AbortSignal,
): Promise<void> => {
  if (existsSync(folder)) return;
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  const { file, args } = initialize(programs, draft);
  const env = { ...process.env, TMPDIR: temporary };
  const done = await runCommand(file, [...args, ...asUser()], { env, signal, group: true });
  signal.throwIfAborted();
  if (done.code !== 0) throw new Error(`${file} failed:\n${done.output}`);
  renameSync(draft, folder);
};

// A commit is written, not forced to the disk: it outlives the server, but not the machine.
const unforced = ['--innodb-flush-log-at-trx-commit=2', '--innodb-flush-method=nosync'];

/** Describes a private database server with its data in `<state>/mysql`. */
export const createMariadb = ({ state, data, ports, programs, durable }: EngineContext): Engine => {
  const folder = join(data, 'mysql');
  // A server deletes what looks like its old temporary tables: a shared folder would lose others'.
  const temporary = join(data, 'mysql.tmp');
  const startup = state.at('mysql.sql');
  const password = state.secret('mysqlPassword');
  const mariadb = programs.mariadbd !== undefined || programs.mysql_install_db !== undefined;
  return {
    prepare: async (signal) => {
      mkdirSync(temporary, { recursive: true });
      await makeData({ programs, folder, temporary }, signal);
      writeFileSync(startup, startupSql(password), { mode: 0o600 });
    },
    programs: [
      {
        name: 'mysql',
        file: programs.mariadbd ?? programs.mysqld ?? 'mariadbd',
        args: [
          '--no-defaults',
          ...asUser(),
          `--datadir=${folder}`,
          `--port=${ports.mysql}`,
          '--bind-address=127.0.0.1',
          // Relative to the data: a path in a deep checkout would be too long for a socket.
          '--socket=mysql.sock',
          `--tmpdir=${temporary}`,
          `--pid-file=${state.at('mysql.pid')}`,
          `--init-file=${startup}`,
          '--skip-name-resolve',
          '--skip-log-bin',
          '--character-set-server=utf8mb4',
          '--max-connections=400',
          ...(durable ? [] : unforced),
          ...(mariadb ? [] : ['--mysqlx=OFF']),
        ],
        env: process.env,
        stopSignal: 'SIGTERM',
        stopWithinMs: 20_000,
        readyWithinMs: 60_000,
        ready: async () => {
          const connection = await mysql.createConnection({
            host: '127.0.0.1',
            port: ports.mysql,
            user: ownName,
            password,
            connectTimeout: 2_000,
          });
          await connection.query(`USE ${ownName}`);
          await connection.end();
        },
      },
    ],
  };
};

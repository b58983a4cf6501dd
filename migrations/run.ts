// Brings the database to the newest schema: `node migrations/run.ts [latest|rollback]`.
import { createMysql } from '../lib/infra/mysql.ts';
import { loadConfig } from '../lib/kernel/config.ts';
import { describeError } from '../lib/kernel/redact.ts';
import { migrationSource } from './source.ts';

const main = async (command: string): Promise<void> => {
  if (command !== 'latest' && command !== 'rollback') throw new Error('say latest or rollback');
  const db = createMysql({ url: loadConfig(process.env).mysqlUrl, pool: 2 });
  const options = { migrationSource, tableName: 'migrations' };
  try {
    await (command === 'latest' ? db.migrate.latest(options) : db.migrate.rollback(options));
    process.stdout.write(`The schema is at ${await db.migrate.currentVersion(options)}.\n`);
  } finally {
    await db.destroy();
  }
};

await main(process.argv[2] ?? 'latest').catch((error: unknown) => {
  process.stderr.write(`Migrating failed: ${describeError(error)}\n`);
  process.exitCode = 1;
});

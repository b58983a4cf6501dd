// Process entry of `npm run reconcile`: proves the books, prints what differs, and ends with 1 if anything does; with 2
// where it could not look. Settings come from the environment.

import { type Difference, reconcile } from '../lib/billing/reconcile.ts';
import { createReconcileStore } from '../lib/billing/reconcile-store.ts';
import { createMysql } from '../lib/infra/mysql.ts';
import { systemClock } from '../lib/kernel/clock.ts';
import { ConfigError, loadConfig } from '../lib/kernel/config.ts';
import { describeError } from '../lib/kernel/redact.ts';

const shownPerCheck = 20;

const describe = (differences: readonly Difference[]): string =>
  [...Map.groupBy(differences, ({ check }) => check)]
    .map(([check, found]) => {
      const lines = found
        .slice(0, shownPerCheck)
        .map(({ accountId, detail }) => `    account ${accountId}  ${detail}`);
      const more = found.length - lines.length;
      const rest = more > 0 ? [`    and ${more} more`] : [];
      return [`  not so: ${check} (${found.length})`, ...lines, ...rest].join('\n');
    })
    .join('\n');

const hint = '`npm run ops -- reconcile` asks the stack that runs here.';

const prove = async (): Promise<number> => {
  const db = createMysql({ url: loadConfig(process.env).mysqlUrl, pool: 2 });
  try {
    const books = createReconcileStore(db);
    const { accounts, differences, through } = await reconcile({ books, clock: systemClock });
    const until = new Date(through).toISOString();
    process.stdout.write(
      differences.length === 0
        ? `The books of ${accounts} accounts agree, through ${until}.\n`
        : `The books do not agree, through ${until}:\n${describe(differences)}\n`,
    );
    return differences.length === 0 ? 0 : 1;
  } finally {
    await db.destroy();
  }
};

try {
  process.exitCode = await prove();
} catch (error) {
  const line =
    error instanceof ConfigError
      ? `${error.message}\n${hint}`
      : `The books could not be read: ${describeError(error)}`;
  process.stderr.write(`${line}\n`);
  process.exitCode = 2;
}

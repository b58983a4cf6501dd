// Process entry of `npm run reconcile`: proves the books, prints what differs, and ends with 1 if anything does.

import { type Difference, reconcile } from '../lib/billing/reconcile.ts';
import { createReconcileStore } from '../lib/billing/reconcile-store.ts';
import { createMysql } from '../lib/infra/mysql.ts';
import { systemClock } from '../lib/kernel/clock.ts';
import { loadConfig } from '../lib/kernel/config.ts';

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

const config = loadConfig(process.env);
const db = createMysql({ url: config.mysqlUrl, pool: 2 });
try {
  const books = createReconcileStore(db);
  const { accounts, differences, through } = await reconcile({ books, clock: systemClock });
  const until = new Date(through).toISOString();
  process.stdout.write(
    differences.length === 0
      ? `The books of ${accounts} accounts agree, through ${until}.\n`
      : `The books do not agree, through ${until}:\n${describe(differences)}\n`,
  );
  process.exitCode = differences.length === 0 ? 0 : 1;
} finally {
  await db.destroy();
}

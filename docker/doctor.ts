// Process entry of `npm run doctor`: says what is wrong with an installation and what to do about it.
//   npm run doctor [-- --json] [-- --strict]
// Ends with 1 when something is wrong; with --strict a warning is enough. Reads the settings of the environment, or
// those of the stack that `npm start` runs here.
import { describeFindings, examine } from '../lib/doctor/examine.ts';
import { exitCodeOf } from '../lib/doctor/rules.ts';
import { systemClock } from '../lib/kernel/clock.ts';
import { migrationSource } from '../migrations/source.ts';

const asked = new Set(process.argv.slice(2));
const unknown = [...asked].filter((word) => word !== '--json' && word !== '--strict');

const environment = async (): Promise<NodeJS.ProcessEnv> => {
  if (process.env.MYSQL_URL) return process.env;
  // Not in the Docker image, whose processes have their settings.
  const local = await import('./local/running.ts').catch(() => undefined);
  return (local && (await local.runningEnvironment(process.env))) ?? process.env;
};

if (unknown.length > 0) {
  process.stderr.write(`The doctor knows --json and --strict, not ${unknown.join(' ')}.\n`);
  process.exitCode = 2;
} else {
  const migrations = await migrationSource.getMigrations([]);
  const findings = await examine({
    env: await environment(),
    clock: systemClock,
    migrations: migrations.map((name) => migrationSource.getMigrationName(name)),
  });
  const page = asked.has('--json')
    ? `${JSON.stringify({ findings }, null, 2)}\n`
    : describeFindings(findings);
  process.stdout.write(page);
  process.exitCode = exitCodeOf(findings, asked.has('--strict'));
}

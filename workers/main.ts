// Process entry: `node workers/main.ts <name> [<name> …]`, or `all`.
import { createWorkerApp } from '../lib/app.ts';
import { loadConfig } from '../lib/kernel/config.ts';
import { createLog } from '../lib/kernel/log.ts';
import { describeError } from '../lib/kernel/redact.ts';
import { onShutdown } from '../lib/kernel/shutdown.ts';
import { runWorker } from './run.ts';
import { workers } from './workers.ts';

const chosen = (names: string[]): string[] => {
  const wanted = names.includes('all') ? Object.keys(workers) : names;
  const unknown = wanted.filter((name) => !(name in workers));
  if (wanted.length === 0 || unknown.length > 0) {
    throw new Error(`name one or more of ${Object.keys(workers).join(', ')}, or all`);
  }
  return wanted;
};

const main = async (): Promise<void> => {
  const names = chosen(process.argv.slice(2));
  const config = loadConfig(process.env);
  const processName = names.join('+');
  const log = createLog({ level: config.logLevel, process: processName });
  const app = await createWorkerApp({ config, log, processName });
  const running = await Promise.all(
    names.map((name) => runWorker(app, workers[name] ?? { tasks: [] })),
  );
  onShutdown({
    log,
    seconds: config.shutdownSeconds,
    stop: async () => {
      await Promise.all(running.map((worker) => worker.stop()));
      await app.close();
    },
  });
  log.info({ workers: names }, 'ready');
};

await main().catch((error: unknown) => {
  process.stderr.write(
    `The worker did not start: ${error instanceof Error ? error.message : describeError(error)}\n`,
  );
  process.exit(1);
});

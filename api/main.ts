// Process entry of the API.
import { createApiApp } from '../lib/app.ts';
import { loadConfig } from '../lib/kernel/config.ts';
import { createLog } from '../lib/kernel/log.ts';
import { describeError } from '../lib/kernel/redact.ts';
import { onShutdown } from '../lib/kernel/shutdown.ts';
import { listen } from './listen.ts';

const main = async (): Promise<void> => {
  const config = loadConfig(process.env);
  const log = createLog({ level: config.logLevel, process: 'api' });
  const app = await createApiApp({ config, log, processName: 'api' });
  const listening = await listen(app);
  onShutdown({
    log,
    seconds: config.shutdownSeconds,
    stop: async () => {
      await listening.close();
      await app.close();
    },
  });
  log.info({ port: listening.port }, 'ready');
};

await main().catch((error: unknown) => {
  process.stderr.write(
    `The API did not start: ${error instanceof Error ? error.message : describeError(error)}\n`,
  );
  process.exit(1);
});

// Process entry of the ops listener: a process of its own, so that looking never slows a send.

import { loadConfig } from '../../lib/kernel/config.ts';
import { createLog } from '../../lib/kernel/log.ts';
import { describeError } from '../../lib/kernel/redact.ts';
import { onShutdown } from '../../lib/kernel/shutdown.ts';
import { createOpsApp } from '../../lib/ops-app.ts';
import { listenOps } from './listen.ts';

const main = async (): Promise<void> => {
  const config = loadConfig(process.env);
  const log = createLog({ level: config.logLevel, process: 'ops' });
  const app = await createOpsApp({ config, log, processName: 'ops' });
  const listening = await listenOps(app);
  onShutdown({
    log,
    seconds: config.shutdownSeconds,
    stop: async () => {
      app.activity.stopping = true;
      await listening.close();
      await app.close();
    },
  });
  log.info({ port: listening.port }, 'ready');
};

await main().catch((error: unknown) => {
  process.stderr.write(
    `The ops listener did not start: ${error instanceof Error ? error.message : describeError(error)}\n`,
  );
  process.exit(1);
});

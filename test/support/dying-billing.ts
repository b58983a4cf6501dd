// A billing worker that is killed after so many jobs, between the commit and the acknowledgement (0: never).
// Arguments: its environment as JSON, and that number.
import { createWorkerApp } from '../../lib/app.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { billing } from '../../workers/billing.ts';
import { runWorker } from '../../workers/run.ts';
import type { Task } from '../../workers/worker.ts';

const [, , environment = '{}', jobs = '0'] = process.argv;
const app = await createWorkerApp({
  config: loadConfig(JSON.parse(environment)),
  log: silentLog,
  processName: `billing ${process.pid}`,
});

let handled = 0;
const dying = ({ job, handle }: Task): Task => ({
  job,
  handle: (own) => {
    const inner = handle(own);
    return async (payload, meta) => {
      const outcome = await inner(payload, meta);
      handled += 1;
      if (handled === Number(jobs)) process.kill(process.pid, 'SIGKILL');
      return outcome;
    };
  },
});

await runWorker(app, { tasks: billing.tasks.map(dying) });
process.send?.('ready');

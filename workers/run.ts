// Runs a worker over an app: consumes its jobs and does its chores until it is stopped.
import type { WorkerApp } from '../lib/app.ts';
import type { Worker } from './worker.ts';

export type Running = { stop(): Promise<void> };

/** Starts every task and chore; `stop` lets what is in hand finish. */
export const runWorker = async (app: WorkerApp, worker: Worker): Promise<Running> => {
  const consumers = await Promise.all(
    worker.tasks.map(({ job, handle }) =>
      app.broker.consume(job as never, handle(app), { prefetch: job.prefetch }),
    ),
  );
  const chores = worker.chores?.(app) ?? [];
  for (const chore of chores) chore.start();
  return {
    stop: async () => {
      await Promise.all(chores.map((chore) => chore.stop()));
      await Promise.all(consumers.map((consumer) => consumer.stop()));
    },
  };
};

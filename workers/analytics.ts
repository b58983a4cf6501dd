// The analytics worker: keeps the history of every message.
import { analyticsRollup } from '../lib/jobs.ts';
import { task, type Worker } from './worker.ts';

export const analytics: Worker = {
  tasks: [
    task(analyticsRollup, (app) => async ({ events }) => {
      await app.history.record(events);
      return { kind: 'done' };
    }),
  ],
};

// The analytics worker: keeps the history of every message, and the evidence of the guard against pumping.
import { analyticsRollup } from '../lib/jobs.ts';
import { task, type Worker } from './worker.ts';

export const analytics: Worker = {
  tasks: [
    task(analyticsRollup, (app) => async ({ events }) => {
      await Promise.all([app.history.record(events), app.pumping.count(events)]);
      return { kind: 'done' };
    }),
  ],
};

// The analytics worker: keeps the history of every message, its rollups, and the evidence of the guard against pumping.
import { analyticsRollup } from '../lib/jobs.ts';
import { createHearing } from '../lib/reports/hear.ts';
import { createNightlyRecount } from '../lib/reports/recount.ts';
import { createRefresher } from '../lib/reports/refresh.ts';
import { createUpkeep } from '../lib/retention/upkeep.ts';
import { task, type Worker } from './worker.ts';

export const analytics: Worker = {
  tasks: [
    task(analyticsRollup, (app) => async ({ events }) => {
      const marked = app.marker.mark(events);
      await Promise.all([app.history.record(events), app.pumping.count(events), marked]);
      return { kind: 'done' };
    }),
  ],
  chores: (app) => [
    createRefresher(app),
    createHearing(app),
    createNightlyRecount(app),
    createUpkeep(app),
  ],
};

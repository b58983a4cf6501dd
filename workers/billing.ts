// The billing worker: settles what happened to messages and enrollments, charges for it, and proves the books.
import { createBookkeeper, createFloorJudge } from '../lib/billing/chores.ts';
import { billingCharge } from '../lib/jobs.ts';
import { createNewsRunner } from '../lib/messages/news.ts';
import { handleBilling } from '../lib/otp/settle.ts';
import { task, type Worker } from './worker.ts';

export const billing: Worker = {
  tasks: [
    task(billingCharge, (app) => async (job, meta) => {
      const outcome = await handleBilling(app, job, meta);
      // A verification is written here, maybe after the analytics worker has heard of it.
      await app.marker.mark(job.events);
      return outcome;
    }),
  ],
  chores: (app) => [createBookkeeper(app), createFloorJudge(app), createNewsRunner(app)],
};

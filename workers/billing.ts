// The billing worker: settles what happened to messages and enrollments, charges for it, and proves the books.
import { createBookkeeper, createFloorJudge, createNewsRunner } from '../lib/billing/chores.ts';
import { billingCharge } from '../lib/jobs.ts';
import { handleBilling } from '../lib/otp/settle.ts';
import { task, type Worker } from './worker.ts';

export const billing: Worker = {
  tasks: [task(billingCharge, (app) => (job, meta) => handleBilling(app, job, meta))],
  chores: (app) => [createBookkeeper(app), createFloorJudge(app), createNewsRunner(app)],
};

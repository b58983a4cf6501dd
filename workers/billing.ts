// The billing worker: settles what happened to messages and enrollments, and charges for it.
import { billingCharge } from '../lib/jobs.ts';
import { handleBilling } from '../lib/otp/settle.ts';
import { task, type Worker } from './worker.ts';

export const billing: Worker = {
  tasks: [task(billingCharge, (app) => (job, meta) => handleBilling(app, job, meta))],
};

// The billing worker: settles verified messages.
import { billingCharge } from '../lib/jobs.ts';
import { handleVerified } from '../lib/otp/settle.ts';
import { task, type Worker } from './worker.ts';

export const billing: Worker = {
  tasks: [task(billingCharge, (app) => (job, meta) => handleVerified(app, job, meta))],
};

// The webhook worker: turns events into deliveries, and delivers what is due.
import { webhookDispatch } from '../lib/jobs.ts';
import { handleDispatch } from '../lib/webhooks/dispatch.ts';
import { task, type Worker } from './worker.ts';

export const webhook: Worker = {
  tasks: [task(webhookDispatch, (app) => (job) => handleDispatch(app, job, app.deliverer.kick))],
  chores: (app) => [app.deliverer],
};

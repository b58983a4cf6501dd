// The webhook worker: holds its queue. No account can have an address yet, so no event is bound to it.
import { webhookDispatch } from '../lib/jobs.ts';
import { task, type Worker } from './worker.ts';

export const webhook: Worker = {
  tasks: [
    task(
      webhookDispatch,
      () => () => Promise.resolve({ kind: 'dead', reason: 'no_endpoint_can_exist' }),
    ),
  ],
};

// What a worker is: the jobs it takes and what it does beside them.
import type { WorkerApp } from '../lib/app.ts';
import type { Handler } from '../lib/infra/queue/message.ts';
import type { Job } from '../lib/jobs.ts';
import type { Chore } from '../lib/kernel/chore.ts';

export type Task = { job: Job; handle(app: WorkerApp): Handler<never> };

/** Ties a job to its handler: the payload's type is the job's. */
export const task = <P>(job: Job<P>, handle: (app: WorkerApp) => Handler<P>): Task => ({
  job: job as Job,
  handle: handle as unknown as Task['handle'],
});

/** `chores` are the work beside the queue: started with the worker, stopped before it. */
export type Worker = { tasks: readonly Task[]; chores?: (app: WorkerApp) => Chore[] };

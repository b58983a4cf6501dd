// The webhook worker: turns events into deliveries, delivers what is due, replays what was held, probes what was given up, tells former addresses, drops what is old.
import { webhookDispatch } from '../lib/jobs.ts';
import { createFormerTeller } from '../lib/webhooks/former.ts';
import { createProber } from '../lib/webhooks/probe.ts';
import { createRetention } from '../lib/webhooks/purge.ts';
import { createReplayer } from '../lib/webhooks/replay.ts';
import { task, type Worker } from './worker.ts';

export const webhook: Worker = {
  tasks: [task(webhookDispatch, (app) => app.dispatcher.handle)],
  chores: (app) => [
    app.deliverer,
    createReplayer(app),
    createProber(app),
    createFormerTeller(app),
    createRetention(app),
  ],
};

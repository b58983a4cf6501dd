// The table of contents: every worker by the name it is started with.
import { analytics } from './analytics.ts';
import { billing } from './billing.ts';
import { telegram } from './telegram.ts';
import { webhook } from './webhook.ts';
import { whatsapp } from './whatsapp.ts';
import type { Worker } from './worker.ts';

export const workers: Readonly<Record<string, Worker>> = {
  whatsapp,
  telegram,
  webhook,
  billing,
  analytics,
};

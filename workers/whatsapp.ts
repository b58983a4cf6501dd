// The whatsapp worker: sends over WhatsApp, takes its receipts, and looks after what time has come for.
import { handleNews } from '../lib/connections/news.ts';
import { whatsappSend, whatsappStatus } from '../lib/jobs.ts';
import { handleWhatsappStatus } from '../lib/otp/receipts.ts';
import { createKeyPurge, createSweeper } from '../lib/otp/sweep.ts';
import { handleWhatsappSend } from '../lib/otp/transmit-whatsapp.ts';
import { createSecurityPurge } from '../lib/security/purge.ts';
import { task, type Worker } from './worker.ts';

export const whatsapp: Worker = {
  tasks: [
    task(whatsappSend, (app) => (job, meta) => handleWhatsappSend(app, job, meta)),
    task(whatsappStatus, (app) => async (job) => {
      await handleNews(app, job.news ?? []);
      return handleWhatsappStatus(app, job);
    }),
  ],
  chores: (app) => [createSweeper(app), createKeyPurge(app), createSecurityPurge(app)],
};

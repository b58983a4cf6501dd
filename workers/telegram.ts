// The telegram worker: sends the fallback, and answers what recipients say to the bot.
import { telegramSend, telegramUpdate } from '../lib/jobs.ts';
import { handleTelegramUpdate } from '../lib/otp/redeem.ts';
import { handleTelegramSend } from '../lib/otp/transmit-telegram.ts';
import { task, type Worker } from './worker.ts';

export const telegram: Worker = {
  tasks: [
    task(telegramSend, (app) => (job, meta) => handleTelegramSend(app, job, meta)),
    task(telegramUpdate, (app) => (update, meta) => handleTelegramUpdate(app, update, meta)),
  ],
};

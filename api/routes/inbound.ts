// What providers call: WhatsApp's and Telegram's webhooks. Verify, queue, answer; workers do the rest.

import type { ApiApp } from '../../lib/app.ts';
import { takePayment } from '../../lib/billing/deposits.ts';
import { readUpdate } from '../../lib/channels/telegram-webhook.ts';
import { isSignedByMeta } from '../../lib/channels/whatsapp-webhook.ts';
import { telegramUpdate } from '../../lib/jobs.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { equalInConstantTime } from '../../lib/kernel/secrets.ts';
import { statusJobs, updateJob } from '../inbound-jobs.ts';
import { type RawAnswer, rawRoute } from '../route.ts';

const tag = 'Inbound provider calls';
/** Meta sends up to 3 MB in one call. */
const whatsappBodyBytes = 3 * 1024 * 1024;
/** An update is one message of a chat: far less. */
const telegramBodyBytes = 1024 * 1024;
const paymentBodyBytes = 256 * 1024;

const answered =
  'Called by the provider alone. 200 without a body says that it is taken and will not be lost; 403 that it is not signed. ' +
  'A provider that hears anything else comes again.';

const accepted: RawAnswer = { status: 200, body: '' };
const forbidden: RawAnswer = { status: 403, body: '' };

const headerText = (value: string | string[] | undefined): string =>
  typeof value === 'string' ? value : '';

const handshake = rawRoute({
  ...{ method: 'GET', path: '/v1/inbound/whatsapp', tag, maxBodyBytes: 0, errors: [] },
  summary: "Meta's handshake: answers the challenge to whoever knows the verify token.",
  about:
    'With hub.mode=subscribe, hub.verify_token and hub.challenge in the query; 403 for another token.',
  produces: 'text/plain',
  handle: (app, { query }) => {
    const { whatsappVerifyToken } = app.config;
    const token = query.get('hub.verify_token') ?? '';
    const known = whatsappVerifyToken !== '' && equalInConstantTime(token, whatsappVerifyToken);
    const subscribing = query.get('hub.mode') === 'subscribe';
    const challenge = query.get('hub.challenge') ?? '';
    return Promise.resolve(known && subscribing ? { status: 200, body: challenge } : forbidden);
  },
});

/** A provider that is answered 503 comes again; anything that queued is ours from then on. */
const queue = async (publish: Promise<string[]>): Promise<RawAnswer> => {
  try {
    return { ...accepted, jobs: await publish };
  } catch (error) {
    throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: 5 }, { cause: error });
  }
};

const signaturePattern = /^sha256=[0-9a-f]{64}$/;

const whatsapp = rawRoute({
  ...{ method: 'POST', path: '/v1/inbound/whatsapp', tag, maxBodyBytes: whatsappBodyBytes },
  summary:
    "WhatsApp's receipts and news of templates and accounts, signed by Meta over the raw body.",
  about: answered,
  produces: 'text/plain',
  errors: ['PAYLOAD_TOO_LARGE', 'VALIDATION_ERROR'],
  refuse: ({ config }, { headers }) => {
    const signature = headerText(headers['x-hub-signature-256']);
    const signed = config.whatsappAppSecret !== '' && signaturePattern.test(signature);
    return signed ? undefined : forbidden;
  },
  handle: async (app, { body, headers, requestId }) => {
    const signature = headerText(headers['x-hub-signature-256']);
    if (!isSignedByMeta(body, signature, app.config.whatsappAppSecret)) return forbidden;
    return queue(app.statuses.take(statusJobs(body, app.clock.now()), requestId));
  },
});

const isFromTelegram = (app: ApiApp, secret: string): boolean =>
  app.config.telegramWebhookSecret !== '' &&
  equalInConstantTime(secret, app.config.telegramWebhookSecret);

const telegram = rawRoute({
  ...{ method: 'POST', path: '/v1/inbound/telegram', tag, maxBodyBytes: telegramBodyBytes },
  summary: "Telegram's updates, authenticated by the secret header.",
  about: answered,
  produces: 'text/plain',
  errors: ['PAYLOAD_TOO_LARGE', 'VALIDATION_ERROR'],
  refuse: (app, { headers }) => {
    const secret = headerText(headers['x-telegram-bot-api-secret-token']);
    return isFromTelegram(app, secret) ? undefined : forbidden;
  },
  handle: async (app, { body, requestId }) => {
    // An update that is not understood is answered all the same: a chat waits for it otherwise.
    const update = readUpdate(body);
    if (!update) return accepted;
    const named = { messageId: newId(), requestId };
    const published = app.broker.publish(telegramUpdate, updateJob(update), named);
    return queue(published.then(() => [named.messageId]));
  },
});

const payments = rawRoute({
  ...{ method: 'POST', path: '/v1/inbound/payments', tag, maxBodyBytes: paymentBodyBytes },
  summary: "Stripe's webhook: signed news of payments and refunds; each is booked once.",
  about: answered,
  errors: ['PAYLOAD_TOO_LARGE'],
  produces: 'text/plain',
  refuse: ({ payments: provider }, { headers }) => {
    const signed = provider && headerText(headers['stripe-signature']).includes('v1=');
    return signed ? undefined : forbidden;
  },
  handle: async (app, { body, headers }) => {
    const signature = headerText(headers['stripe-signature']);
    return (await takePayment(app, body, signature)) === 'unsigned' ? forbidden : accepted;
  },
});

export const inboundRoutes = [payments, handshake, whatsapp, telegram];

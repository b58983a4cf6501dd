// What providers call: WhatsApp's and Telegram's webhooks. Verify, queue, answer; workers do the rest.

import type { ApiApp } from '../../lib/app.ts';
import { takePayment } from '../../lib/billing/deposits.ts';
import { type ParsedUpdate, readUpdate } from '../../lib/channels/telegram-webhook.ts';
import {
  type AccountNews,
  isSignedByMeta,
  readNews,
  readReceipts,
  type WhatsappReceipt,
} from '../../lib/channels/whatsapp-webhook.ts';
import {
  type Receipt,
  type StatusJob,
  telegramUpdate,
  type WhatsappNews,
  whatsappStatus,
} from '../../lib/jobs.ts';
import { fail } from '../../lib/kernel/errors.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { equalInConstantTime } from '../../lib/kernel/secrets.ts';
import { tokenHash } from '../../lib/links/rules.ts';
import { type RawAnswer, rawRoute } from '../route.ts';

const tag = 'Inbound provider calls';
/** Meta sends up to 3 MB in one call; Telegram far less. */
const maxBodyBytes = 3 * 1024 * 1024;

const accepted: RawAnswer = { status: 200, body: '' };
const forbidden: RawAnswer = { status: 403, body: '' };

const headerText = (value: string | string[] | undefined): string =>
  typeof value === 'string' ? value : '';

const handshake = rawRoute({
  ...{ method: 'GET', path: '/v1/inbound/whatsapp', tag, maxBodyBytes: 0, errors: [] },
  summary: "Meta's handshake: answers the challenge to whoever knows the verify token.",
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

const echoPattern = /^([0-9a-f-]{36})\.([0-9a-f]{32})$/;

/** The echo of a message of ours is its id and its recipient's key; others' messages carry something else. */
const toReceipt = ({ echo, status, at, errorCode }: WhatsappReceipt): Receipt | undefined => {
  const [, id, recipient] = echoPattern.exec(echo) ?? [];
  if (id === undefined || recipient === undefined) return undefined;
  return { message_id: id, recipient_key: recipient, status, at, error_code: errorCode };
};

const toNews = ({ wabaId, banState, ...news }: AccountNews): WhatsappNews => ({
  ...news,
  waba_id: wabaId,
  ban_state: banState,
});

/** A provider that is answered 503 comes again; anything that queued is ours from then on. */
const queue = async (publish: Promise<unknown>): Promise<RawAnswer> => {
  try {
    await publish;
    return accepted;
  } catch (error) {
    throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: 5 }, { cause: error });
  }
};

const whatsapp = rawRoute({
  ...{ method: 'POST', path: '/v1/inbound/whatsapp', tag, maxBodyBytes },
  summary:
    "WhatsApp's receipts and news of templates and accounts, signed by Meta over the raw body.",
  produces: 'text/plain',
  errors: ['PAYLOAD_TOO_LARGE', 'VALIDATION_ERROR'],
  handle: async (app, { body, headers, requestId }) => {
    const signature = headerText(headers['x-hub-signature-256']);
    if (!isSignedByMeta(body, signature, app.config.whatsappAppSecret)) return forbidden;
    const receipts = (readReceipts(body) ?? [])
      .map(toReceipt)
      .filter((receipt) => receipt !== undefined);
    const news = readNews(body, app.clock.now()).map(toNews);
    // Apart, so that trouble with one does not hold up the other.
    const payloads = [
      ...(receipts.length > 0 ? [{ receipts, due: [] }] : []),
      ...(news.length > 0 ? [{ receipts: [], due: [], news }] : []),
    ];
    const publish = (payload: StatusJob) =>
      app.broker.publish(whatsappStatus, payload, { messageId: newId(), requestId });
    return queue(Promise.all(payloads.map(publish)));
  },
});

const toJob = (update: ParsedUpdate) => ({
  update_id: update.updateId,
  chat_id: update.chatId,
  user_id: update.userId,
  kind: update.kind,
  token_hash: update.startToken === null ? null : tokenHash(update.startToken),
  contact: update.contact && {
    phone: update.contact.phone,
    user_id: update.contact.userId,
    forwarded: update.contact.forwarded,
  },
  language: update.language,
});

const isFromTelegram = (app: ApiApp, secret: string): boolean =>
  app.config.telegramWebhookSecret !== '' &&
  equalInConstantTime(secret, app.config.telegramWebhookSecret);

const telegram = rawRoute({
  ...{ method: 'POST', path: '/v1/inbound/telegram', tag, maxBodyBytes },
  summary: "Telegram's updates, authenticated by the secret header.",
  produces: 'text/plain',
  errors: ['PAYLOAD_TOO_LARGE', 'VALIDATION_ERROR'],
  handle: async (app, { body, headers, requestId }) => {
    const secret = headerText(headers['x-telegram-bot-api-secret-token']);
    if (!isFromTelegram(app, secret)) return forbidden;
    // An update that is not understood is answered all the same: a chat waits for it otherwise.
    const update = readUpdate(body);
    if (!update) return accepted;
    return queue(
      app.broker.publish(telegramUpdate, toJob(update), { messageId: newId(), requestId }),
    );
  },
});

const payments = rawRoute({
  ...{ method: 'POST', path: '/v1/inbound/payments', tag, maxBodyBytes: 256 * 1024 },
  summary: "Stripe's webhook: signed news of payments; each is booked once.",
  errors: ['PAYLOAD_TOO_LARGE'],
  produces: 'text/plain',
  handle: async (app, { body, headers }) => {
    const signature = headerText(headers['stripe-signature']);
    return (await takePayment(app, body, signature)) === 'unsigned' ? forbidden : accepted;
  },
});

export const inboundRoutes = [payments, handshake, whatsapp, telegram];

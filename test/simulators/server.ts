// The provider simulators: one HTTP server with WhatsApp, Telegram, Turnstile, the control API and the page.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Behaviour, parseBehaviour } from './behaviours.ts';
import { type Clock, createTimers } from './clock.ts';
import { controlRoutes, messagesOf } from './control.ts';
import { whatsappControlRoutes } from './control-whatsapp.ts';
import { createDeliveries } from './deliveries.ts';
import { answered, createRouter, parseJsonObject, Refusal, readBody, sendJson } from './http.ts';
import { createPage } from './page.ts';
import { createPhones, parsePhone } from './phones.ts';
import { createReceiver } from './receiver.ts';
import { createReceiverPage } from './receiver-page.ts';
import { createStats } from './stats.ts';
import { createStripe, type StripeOptions } from './stripe.ts';
import { type BotOptions, createTelegram } from './telegram.ts';
import { createChats } from './telegram-chats.ts';
import { type Contact, createTelegramOwner, type Patience } from './telegram-owner.ts';
import { createUpdates } from './telegram-updates.ts';
import { createTurnstile } from './turnstile.ts';
import { createWhatsApp, graphHeaders } from './whatsapp.ts';
import { createAccounts } from './whatsapp-accounts.ts';
import { createFaults } from './whatsapp-faults.ts';
import { createWhatsAppLimits } from './whatsapp-limits.ts';
import { createMessageReader } from './whatsapp-messages.ts';
import { createWhatsAppNodes } from './whatsapp-nodes.ts';
import { createWhatsAppSend } from './whatsapp-send.ts';
import { createTemplates } from './whatsapp-templates.ts';
import { createWhatsAppWebhooks } from './whatsapp-webhooks.ts';

export type SimulatorOptions = {
  /** 0 takes a free port. */
  port: number;
  host?: string;
  /** Where webhooks go: `{apiUrl}/v1/inbound/…`. Empty: they wait until setApiUrl. */
  apiUrl: string;
  whatsapp: {
    appSecret: string;
    accessToken: string;
    phoneNumberId: string;
    wabaId: string;
    verifyToken: string;
    templateName: string;
    templateLanguage: string;
  };
  telegram: BotOptions;
  stripe?: StripeOptions;
  /** Where the secret of the receiver's account stands. */
  receiverSecretFile?: string | undefined;
  clock?: Clock;
  /** Statuses due within this many ms go out in one POST. */
  statusBatchMs?: number;
  /** False: `ok` phones get their messages, but no status is reported by itself. */
  autoDeliver?: boolean;
};

const displayDigits = '15550783881';
const keepAliveMs = 65_000;

const createParts = (options: SimulatorOptions, apiUrl: () => string) => {
  const clock = options.clock ?? { now: Date.now };
  const timers = createTimers();
  const stats = createStats(clock);
  const phones = createPhones(clock);
  const deliveries = { whatsapp: createDeliveries(timers), telegram: createDeliveries(timers) };
  const { wabaId, phoneNumberId, accessToken, appSecret, verifyToken } = options.whatsapp;
  const accounts = createAccounts(clock, {
    ...{ wabaId, phoneNumberId, accessToken, digits: displayDigits, name: 'Tessera' },
    ...{ registered: true, subscribed: true },
  });
  const webhooks = createWhatsAppWebhooks({
    ...{ appSecret, apiUrl, accounts, clock, timers },
    deliveries: deliveries.whatsapp,
    batchMs: options.statusBatchMs ?? 20,
  });
  const templates = createTemplates({
    ...{ clock, timers, webhooks, business: accounts.business },
    standard: {
      wabaId,
      name: options.whatsapp.templateName,
      language: options.whatsapp.templateLanguage,
    },
  });
  const limits = createWhatsAppLimits(clock);
  const faults = createFaults();
  const headers = graphHeaders(wabaId, 'v25.0');
  const autoDeliver = options.autoDeliver ?? true;
  const whatsapp = createWhatsApp({
    ...{
      accounts,
      faults,
      limits,
      stats,
      nodes: createWhatsAppNodes({ accounts, templates, appSecret, apiUrl }),
    },
    readMessage: createMessageReader(templates),
    send: createWhatsAppSend({ phones, stats, webhooks, timers, headers, autoDeliver }),
  });
  const chats = createChats(clock);
  const bot = options.telegram;
  const updates = createUpdates({ deliveries: deliveries.telegram, apiUrl, options: bot });
  const telegram = createTelegram({ options: bot, phones, stats, chats, updates, timers });
  const owner = createTelegramOwner({ options: bot, phones, chats, updates, timers });
  const turnstile = createTurnstile({ clock, stats });
  const { stripe: stripeOptions = { secretKey: '', webhookSecret: '' } } = options;
  const stripe = createStripe({ options: stripeOptions, clock, stats, apiUrl });
  const page = createPage({ phones, timers });
  const receiver = createReceiver({ clock, timers, secretFile: options.receiverSecretFile });
  const receiverPage = createReceiverPage({ receiver, timers });

  const reset = () => {
    const parts = [
      accounts,
      templates,
      webhooks,
      limits,
      faults,
      phones,
      stats,
      chats,
      updates,
      turnstile,
      stripe,
      receiver,
    ];
    for (const part of [...parts, deliveries.whatsapp, deliveries.telegram]) part.reset();
    receiverPage.refresh();
  };
  const summaries = () => ({
    whatsapp: deliveries.whatsapp.summary(),
    telegram: deliveries.telegram.summary(),
  });
  const routes = [
    ...controlRoutes({ phones, stats, owner, webhooks: summaries, reset }),
    ...whatsappControlRoutes({
      ...{ phones, accounts, templates, webhooks, limits, faults, turnstile, verifyToken, apiUrl },
    }),
    {
      method: 'POST',
      path: '/payments/:id/pay',
      handle: async ({ params }: { params: Record<string, string> }) => ({
        status: await stripe.pay(params.id ?? ''),
      }),
    },
    ...page.routes,
    ...receiverPage.routes,
  ];
  return {
    ...{
      timers,
      stats,
      phones,
      deliveries,
      webhooks,
      whatsapp,
      telegram,
      owner,
      turnstile,
      stripe,
      page,
      receiver,
      receiverPage,
    },
    ...{ reset, router: createRouter(routes), summaries },
  };
};

type Parts = ReturnType<typeof createParts>;

const handleControl = async (parts: Parts, request: IncomingMessage, response: ServerResponse) => {
  const { method = 'GET', url = '/' } = request;
  const [path = '/', search = ''] = url.split('?', 2);
  const { route, params } = parts.router.find(method, path);
  const body = parseJsonObject(await readBody(request));
  const query = new URLSearchParams(search);
  const result = await route.handle({ request, response, params, query, body });
  if (result !== answered) sendJson(response, 200, result);
};

const dispatch = (parts: Parts, request: IncomingMessage, response: ServerResponse) => {
  const { url = '/' } = request;
  if (url.startsWith('/graph/')) return parts.whatsapp.handle(request, response);
  if (url.startsWith('/telegram/')) return parts.telegram.handle(request, response);
  if (url.startsWith('/turnstile/v0/siteverify')) return parts.turnstile.handle(request, response);
  if (url.startsWith('/v1/checkout/sessions')) return parts.stripe.open(request, response);
  if (url === '/receiver' && request.method === 'POST')
    return parts.receiver.handle(request, response);
  return handleControl(parts, request, response);
};

const handle = async (parts: Parts, request: IncomingMessage, response: ServerResponse) => {
  try {
    await dispatch(parts, request, response);
  } catch (error) {
    const known = error instanceof Refusal;
    // The connection stays usable only when the body was read.
    if (!request.complete) response.setHeader('connection', 'close');
    sendJson(response, known ? error.status : 500, {
      error: known ? error.message : `The simulator failed: ${String(error)}`,
    });
  }
};

/** Phones as tests handle them without HTTP. */
const phoneControls = (parts: Parts) => ({
  /** Messages on a phone, newest first; only those with a code unless `all`. */
  messages: (phone: string, all = false) => messagesOf(parts.phones, parsePhone(phone), all),
  /** Changes what a phone does. @throws Refusal for unknown values */
  behave: (
    phone: string,
    change: { whatsapp?: string; telegram?: string; delay_ms?: number | null },
  ) => parts.phones.behave(parsePhone(phone), parseBehaviour(change)),
  /** Changes what all phones do. @throws Refusal for unknown values */
  behaveAll: (change: {
    whatsapp?: string;
    telegram?: string;
    delay_ms?: number | null;
  }): Behaviour => parts.phones.behaveAll(parseBehaviour(change)),
  /** Taps a Telegram link as the phone's owner; see telegram-owner.ts. */
  start: (phone: string, given: { url: string; contact?: Contact }, patience?: Partial<Patience>) =>
    parts.owner.start(parsePhone(phone), given, patience),
  block: (phone: string) => parts.owner.block(parsePhone(phone)),
  unblock: (phone: string) => parts.owner.unblock(parsePhone(phone)),
  chatId: (phone: string): number => parts.telegram.chatIdOf(parsePhone(phone)),
});

export type Simulators = Awaited<ReturnType<typeof createSimulators>>;

/**
 * Starts the simulators and listens.
 * @throws when the port is taken
 */
export const createSimulators = async (options: SimulatorOptions) => {
  const host = options.host ?? '127.0.0.1';
  let apiUrl = options.apiUrl.replace(/\/+$/, '');
  const parts = createParts(options, () => apiUrl);
  const server = createServer({ keepAliveTimeout: keepAliveMs }, (request, response) => {
    void handle(parts, request, response);
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, host, resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : options.port;
  return {
    url: `http://${host}:${port}`,
    port,
    /** Moves the receiver of all webhooks. */
    setApiUrl: (url: string): void => {
      apiUrl = url.replace(/\/+$/, '');
    },
    phones: phoneControls(parts),
    /** The counters of GET /stats. */
    stats: () => ({ ...parts.stats.summary(), webhooks: parts.summaries() }),
    /** How often a message (biz_opaque_callback_data) was accepted and delivered by WhatsApp. */
    messageCount: (id: string) => parts.stats.message('whatsapp', id),
    /** Resolves when all statuses due now were accepted by the receiver. */
    settled: () => parts.webhooks.settled(),
    /** The same as DELETE /state. */
    reset: parts.reset,
    /** Ends everything: held calls are cut, webhooks not yet accepted are forgotten. */
    close: async (): Promise<void> => {
      parts.timers.cancelAll();
      parts.page.close();
      parts.receiverPage.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await Promise.all([
        closed,
        parts.deliveries.whatsapp.close(),
        parts.deliveries.telegram.close(),
      ]);
    },
  };
};

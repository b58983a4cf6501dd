// The composition root: from settings to everything a process needs, and back down in reverse.
import { createPasswords, type Passwords } from './accounts/passwords.ts';
import { createPayments } from './channels/payments.ts';
import { createTelegram } from './channels/telegram.ts';
import { createTurnstile } from './channels/turnstile.ts';
import { createWhatsapp } from './channels/whatsapp.ts';
import { createWhatsappManagement } from './channels/whatsapp-management.ts';
import { createNoteRefusal } from './connections/broken.ts';
import { templateTtlSeconds } from './connections/rules.ts';
import { timeTelegram, timeWebhooks, timeWhatsapp } from './counting.ts';
import { createHealth } from './health.ts';
import { type AppOptions, type House, openHouse } from './house.ts';
import { type AddressRules, parseRange } from './infra/addresses.ts';
import { createHttp, type Http } from './infra/http.ts';
import { createOutbound } from './infra/outbound.ts';
import { mostInHand } from './infra/queue/consumer.ts';
import { telegramSend, telegramUpdate, whatsappSend } from './jobs.ts';
import type { Config } from './kernel/config.ts';
import { version } from './kernel/version.ts';
import { createAuthenticate } from './keys/authenticate.ts';
import { createKeyUses } from './keys/uses.ts';
import { createStatusIntake } from './otp/status-intake.ts';
import { readGauge } from './pulse/family.ts';
import type { Metrics } from './pulse/metrics.ts';
import { createPumpingCounter } from './pumping/count.ts';
import { createHeldPrefixes } from './pumping/held.ts';
import { createPumpingGuard } from './pumping/refuse.ts';
import { parseAllowed } from './pumping/rules.ts';
import { createResetCodes } from './recovery/code-store.ts';
import { createRecovery } from './recovery/forgot.ts';
import { createResetGuesses } from './recovery/guesses.ts';
import { createMarker } from './reports/mark.ts';
import { createThrottle } from './security/throttle.ts';
import { createAuthenticateSession } from './sessions/authenticate.ts';
import { createDeliverer } from './webhooks/deliver.ts';
import { createDispatcher } from './webhooks/dispatch.ts';
import { createEndpoints } from './webhooks/endpoints.ts';

const turnstileTimeoutMs = 5_000;

/** The provider's management calls, which are few and rare, and the template that own numbers send with. */
const openManagement = (config: Config) => {
  const http = createHttp({ timeoutMs: config.whatsappTimeoutMs, connections: 8 });
  const management = createWhatsappManagement({
    http,
    baseUrl: config.whatsappBaseUrl,
    apiVersion: config.whatsappApiVersion,
    appId: config.whatsappAppId,
    appSecret: config.whatsappAppSecret,
  });
  const template = {
    name: config.whatsappTemplateName,
    language: config.whatsappTemplateLanguage,
    ttlSeconds: templateTtlSeconds(config.whatsappDeliverySeconds),
  };
  return { managementHttp: http, management, template };
};

/** What both sides of the guard against pumping share. */
const guarding = ({ config, evidence, platform }: House) => ({
  store: evidence,
  mode: platform.guardMode,
  allowed: parseAllowed(config.fraudAllowedAccounts, config.fraudAllowedPrefixes),
});

/** What a call that was begun may take until its outcome is known, whatever the channel. */
const longestCallMs = (config: Config): number =>
  Math.max(config.whatsappTimeoutMs + config.whatsappEchoWaitMs, config.telegramTimeoutMs);

/** Both keys or none: a payment that cannot be checked is none. */
const openPayments = (config: Config) =>
  config.stripeSecretKey && config.stripeWebhookSecret
    ? createPayments({
        secretKey: config.stripeSecretKey,
        webhookSecret: config.stripeWebhookSecret,
        baseUrl: config.stripeBaseUrl,
        returnUrl: config.depositReturnUrl,
      })
    : undefined;

/** What signing up, logging in and paying need. */
const openEntrance = ({ config, redis, clock }: House) => {
  const turnstileHttp = createHttp({ timeoutMs: turnstileTimeoutMs, connections: 8 });
  const { turnstileSecret: secret, turnstileBaseUrl: baseUrl } = config;
  return {
    turnstileHttp,
    turnstile: secret ? createTurnstile({ http: turnstileHttp, baseUrl, secret }) : undefined,
    payments: openPayments(config),
    passwords: createPasswords(),
    throttle: createThrottle(redis, config.keyPrefix, clock),
    resetCodes: createResetCodes(redis, config.keyPrefix, config.codePeppers),
    resetGuesses: createResetGuesses(redis, config.keyPrefix, clock),
  };
};

const watchPasswords = ({ registry }: Metrics, { waiting }: Passwords): void =>
  readGauge(
    {
      ...{ registry, name: 'tessera_argon2_queue', labels: [] },
      help: 'Password hashes that wait for their turn.',
    },
    () => [{ value: waiting() }],
  );

/** The API process. */
export const createApiApp = async (options: AppOptions) => {
  const house = await openHouse(options);
  const { config, evidence: store, log } = house;
  const held = createHeldPrefixes({ store, log });
  const guard = createPumpingGuard({
    ...{ ...house, ...guarding(house), held },
    onDecision: house.metrics.pumping.add,
  });
  await guard.start();
  const managing = openManagement(config);
  const flow = {
    ...house,
    guard,
    botUsername: config.telegramBotToken ? config.telegramBotUsername : '',
    sendDeadlineMs: config.sendDeadlineMs,
    reachabilityWindowMs: config.reachabilityWindowMs,
    settleDeadlineMs: config.settleDeadlineMs,
    callMs: longestCallMs(config),
  };
  const entrance = openEntrance(house);
  watchPasswords(house.metrics, entrance.passwords);
  const statuses = createStatusIntake(house.broker);
  const keyUses = createKeyUses(house);
  keyUses.start();
  const recovery = createRecovery({ ...house, ...entrance, sends: flow, verifies: flow });
  return {
    ...house,
    ...entrance,
    ...managing,
    version,
    webhookRules: webhookRules(config),
    recovery,
    statuses,
    keyUses,
    authenticate: createAuthenticate({ ...house, keyUses }),
    authenticateSession: createAuthenticateSession(house),
    health: createHealth(house),
    guard,
    sends: flow,
    verifies: flow,
    close: async () => {
      guard.stop();
      await keyUses.stop();
      await Promise.all([recovery.drain(), statuses.drain()]);
      await house.close();
      entrance.passwords.close();
      await entrance.turnstileHttp.close();
      await managing.managementHttp.close();
    },
  };
};

export type ApiApp = Awaited<ReturnType<typeof createApiApp>>;

const partsOf = (list: string): string[] => list.split(',').filter(Boolean);

const webhookRules = (config: Config): AddressRules => ({
  open: config.webhookAllowedHosts,
  ports: new Set(partsOf(config.webhookPorts).map(Number)),
  denied: partsOf(config.webhookDenied).map(parseRange),
});

/** Calls to addresses that customers gave us. */
const openOutbound = (config: Config) =>
  createOutbound({ rules: webhookRules(config), deadlineMs: config.webhookTimeoutMs });

/** The providers, timed. */
const openChannels = (house: House, whatsappHttp: Http, telegramHttp: Http) => ({
  whatsapp: timeWhatsapp(
    house,
    createWhatsapp({
      http: whatsappHttp,
      baseUrl: house.config.whatsappBaseUrl,
      apiVersion: house.config.whatsappApiVersion,
    }),
  ),
  telegram: timeTelegram(
    house,
    createTelegram({
      http: telegramHttp,
      baseUrl: house.config.telegramBaseUrl,
      token: house.config.telegramBotToken,
    }),
  ),
});

/** A worker process: the house, and the channels to call. */
export const createWorkerApp = async (options: AppOptions) => {
  const house = await openHouse(options);
  const { config } = house;
  // A connection for each job in hand: a message that was claimed never waits for one.
  const whatsappHttp = createHttp({
    timeoutMs: config.whatsappTimeoutMs,
    connections: mostInHand(whatsappSend),
  });
  const telegramHttp = createHttp({
    timeoutMs: config.telegramTimeoutMs,
    connections: mostInHand(telegramSend) + mostInHand(telegramUpdate),
  });
  const managing = openManagement(config);
  house.tally.start();
  const outbound = timeWebhooks(house.metrics, openOutbound(config));
  const timeoutMs = config.webhookTimeoutMs;
  const endpoints = createEndpoints(house);
  const deliverer = createDeliverer({ ...house, endpoints, outbound, version, timeoutMs });
  return {
    ...house,
    ...managing,
    noteRefusal: createNoteRefusal(house),
    ...openChannels(house, whatsappHttp, telegramHttp),
    pumping: createPumpingCounter({ ...house, ...guarding(house) }),
    marker: createMarker(house),
    deliverer,
    dispatcher: createDispatcher({ ...house, endpoints, deliverer }),
    echoWaitMs: config.whatsappEchoWaitMs,
    whatsappCallMs: config.whatsappTimeoutMs,
    telegramCallMs: config.telegramTimeoutMs,
    reachabilityWindowMs: config.reachabilityWindowMs,
    proof: config.telegramLinkProof,
    close: async () => {
      await house.tally.stop();
      await house.close();
      const all = [whatsappHttp, telegramHttp, managing.managementHttp, outbound];
      await Promise.all(all.map((http) => http.close()));
    },
  };
};

export type WorkerApp = Awaited<ReturnType<typeof createWorkerApp>>;

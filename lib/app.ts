// The composition root: from settings to everything a process needs, and back down in reverse.
import { createPasswords } from './accounts/passwords.ts';
import { createAccountStore } from './accounts/store.ts';
import { createCreditStore } from './billing/credit-store.ts';
import { createFloorStore } from './billing/floor-store.ts';
import { createLedgerStore } from './billing/ledger-store.ts';
import { createPoster } from './billing/post.ts';
import { createPriceStore } from './billing/price-store.ts';
import { createPrices } from './billing/prices.ts';
import { createQuotes } from './billing/quote.ts';
import { createReconcileStore } from './billing/reconcile-store.ts';
import { createCapacityStore } from './capacity/store.ts';
import { createThrottles } from './capacity/throttles.ts';
import { createPayments } from './channels/payments.ts';
import { createTelegram } from './channels/telegram.ts';
import { createTurnstile } from './channels/turnstile.ts';
import { createWhatsapp } from './channels/whatsapp.ts';
import { createWhatsappManagement } from './channels/whatsapp-management.ts';
import { createNoteRefusal } from './connections/broken.ts';
import { templateTtlSeconds } from './connections/rules.ts';
import { createConnectionStore } from './connections/store.ts';
import { createHealth } from './health.ts';
import { createReservations } from './idempotency/reservations.ts';
import { createIdempotency } from './idempotency/store.ts';
import { createHttp } from './infra/http.ts';
import { createMysql } from './infra/mysql.ts';
import { isOutage } from './infra/outages.ts';
import { createBroker } from './infra/queue/broker.ts';
import { closeRedis, createRedis, redisReady } from './infra/redis.ts';
import { jobs } from './jobs.ts';
import { type Clock, systemClock } from './kernel/clock.ts';
import type { Config } from './kernel/config.ts';
import type { Log } from './kernel/log.ts';
import { createRecipientKeys } from './kernel/recipients.ts';
import { createSealer } from './kernel/secrets.ts';
import { createAuthenticate } from './keys/authenticate.ts';
import { createRevocations } from './keys/revocations.ts';
import { createKeyStore } from './keys/store.ts';
import { createKeyUses } from './keys/uses.ts';
import { createAdmission } from './limits/admission.ts';
import { createReadLimiter } from './limits/reads.ts';
import { createLinkStore } from './links/store.ts';
import { createAnnouncer } from './messages/announce.ts';
import { createHistory } from './messages/history.ts';
import { createMessageStore } from './messages/store.ts';
import { createLiveStore } from './otp/store.ts';
import { createPumpingCounter } from './pumping/count.ts';
import { createHeldPrefixes } from './pumping/held.ts';
import { createPumpingGuard } from './pumping/refuse.ts';
import { parseAllowed } from './pumping/rules.ts';
import { createPumpingStore } from './pumping/store.ts';
import { createRecovery } from './recovery/forgot.ts';
import { createReportStore } from './reports/store.ts';
import { createChallengeStore } from './security/challenge-store.ts';
import { createFactorStore } from './security/factor-store.ts';
import { createThrottle } from './security/throttle.ts';
import { createSenderWatch } from './sender/health.ts';
import { createResolveSender } from './sender/resolve.ts';
import { createAuthenticateSession } from './sessions/authenticate.ts';
import { createSessionStore } from './sessions/store.ts';
import { createSignupStore } from './signup/store.ts';
import { createAttemptStore } from './totp/attempt-store.ts';
import { createGuesses } from './totp/guesses.ts';
import { createTotpStore } from './totp/store.ts';

export const version = '0.1.0';

export type AppOptions = {
  config: Config;
  log: Log;
  /** Name of the process, as brokers and logs show it. */
  processName: string;
  clock?: Clock;
};

const patienceMs = 10_000;
const turnstileTimeoutMs = 5_000;

/** The sockets of a process. */
const openInfra = ({ config, log, processName, clock }: Required<AppOptions>) => {
  const db = createMysql({ url: config.mysqlUrl, pool: config.mysqlPool });
  const redis = createRedis({
    url: config.redisUrl,
    log,
    commandTimeoutMs: config.redisTimeoutMs,
    name: processName,
  });
  const broker = createBroker({
    urls: config.amqpUrls.split(',').filter((url) => url !== ''),
    processName,
    jobs: [...jobs],
    log,
    clock,
    publishTimeoutMs: config.publishTimeoutMs,
    isOutage,
  });
  return { db, redis, broker };
};

type Infra = ReturnType<typeof openInfra>;

const openStores = ({ db, redis, broker }: Infra, { config, clock, log }: Required<AppOptions>) => {
  const prefix = config.keyPrefix;
  const [phonePepper] = config.phonePepper;
  if (!phonePepper) throw new Error('PHONE_PEPPER is empty');
  const connections = createConnectionStore(db);
  const revocations = createRevocations(redis, prefix);
  const sealer = createSealer(config.sealingKeys);
  return {
    accounts: createAccountStore(db),
    signups: createSignupStore(db),
    challenges: createChallengeStore(db),
    factors: createFactorStore(db),
    keys: createKeyStore(db),
    sessions: createSessionStore(db),
    ...{ connections, revocations, sealer },
    links: createLinkStore({ db, redis, prefix }),
    live: createLiveStore(redis, prefix),
    messages: createMessageStore(db, config.whatsappDeliverySeconds),
    reservations: createReservations(db, () => clock.now()),
    history: createHistory(db),
    idempotency: createIdempotency({ redis, prefix }),
    admission: createAdmission({ redis, prefix }),
    evidence: createPumpingStore(redis, prefix),
    reads: createReadLimiter(redis, prefix, {
      onFailOpen: (name) => log.warn({ limit: name }, 'limit decided without redis'),
    }),
    recipients: createRecipientKeys(phonePepper),
    announcer: createAnnouncer(broker),
    ledger: createLedgerStore(db),
    credit: createCreditStore(redis, prefix),
    prices: createPriceStore(db),
    books: createReconcileStore(db),
    floor: createFloorStore(db),
    reports: createReportStore(db),
    capacity: createCapacityStore(db),
    throttles: createThrottles(redis, prefix, log),
    totp: createTotpStore(db),
    attempts: createAttemptStore(db),
    totpSealer: config.totpKeys.length > 0 ? createSealer(config.totpKeys) : undefined,
    guesses: createGuesses(redis, prefix),
    resolveSender: createResolveSender({ config, connections, revocations, sealer, clock }),
    senders: createSenderWatch({ redis, prefix, clock, log }),
  };
};

/** What stands between the ledger and those who ask or post. */
const openMoney = (
  house: Awaited<ReturnType<typeof openStores>> &
    Pick<Required<AppOptions>, 'config' | 'clock' | 'log'>,
) => {
  const { config } = house;
  const everywhereMicros = config.priceMicros;
  return {
    poster: createPoster(house),
    quotes: createQuotes({
      ...house,
      prices: createPrices({ ...house, everywhereMicros }),
      trialVerifications: config.trialVerifications,
      sharedCountries: new Set(config.sharedCountries.split(',').filter(Boolean)),
      sharedHourly: config.sharedHourly,
    }),
  };
};

/** What every process shares: sockets, stores and settings, opened together and closed together. */
const openHouse = async (options: AppOptions) => {
  const full: Required<AppOptions> = { clock: systemClock, ...options };
  const infra = openInfra(full);
  const stores = openStores(infra, full);
  const { config, clock, log } = full;
  // Without Redis the process starts all the same, and answers 503 until it is there.
  await Promise.all([
    infra.broker.start(),
    redisReady(infra.redis, patienceMs).catch(() => undefined),
  ]);
  await stores.revocations.start();
  const money = openMoney({ ...stores, ...full });
  const close = async (): Promise<void> => {
    stores.revocations.stop();
    await money.poster.drain();
    await stores.announcer.drain();
    await stores.messages.drain();
    await stores.attempts.drain();
    await infra.broker.close();
    await closeRedis(infra.redis);
    await infra.db.destroy();
  };
  const { trialVerifications, floorMinimumDaily, codePeppers: peppers } = config;
  const settings = { config, clock, log, peppers, trialVerifications, floorMinimumDaily };
  return { ...infra, ...stores, ...money, ...settings, close };
};

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
const guarding = ({ config, evidence }: Awaited<ReturnType<typeof openHouse>>) => ({
  store: evidence,
  mode: config.fraudGuard,
  allowed: parseAllowed(config.fraudAllowedAccounts, config.fraudAllowedPrefixes),
});

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
const openEntrance = ({ config, redis, clock }: Awaited<ReturnType<typeof openHouse>>) => {
  const turnstileHttp = createHttp({ timeoutMs: turnstileTimeoutMs, connections: 8 });
  const { turnstileSecret: secret, turnstileBaseUrl: baseUrl } = config;
  return {
    turnstileHttp,
    turnstile: secret ? createTurnstile({ http: turnstileHttp, baseUrl, secret }) : undefined,
    payments: openPayments(config),
    passwords: createPasswords(),
    throttle: createThrottle(redis, config.keyPrefix, clock),
  };
};

/** The API process. */
export const createApiApp = async (options: AppOptions) => {
  const house = await openHouse(options);
  const { config, evidence: store, log } = house;
  const held = createHeldPrefixes({ store, log });
  const guard = createPumpingGuard({ ...house, ...guarding(house), held });
  await guard.start();
  const managing = openManagement(config);
  const flow = {
    ...house,
    guard,
    botUsername: config.telegramBotToken ? config.telegramBotUsername : '',
    sendDeadlineMs: config.sendDeadlineMs,
    reachabilityWindowMs: config.reachabilityWindowMs,
    settleDeadlineMs: config.settleDeadlineMs,
    callMs: config.whatsappTimeoutMs,
  };
  const entrance = openEntrance(house);
  const keyUses = createKeyUses(house);
  keyUses.start();
  const recovery = createRecovery({ ...house, ...entrance, sends: flow, verifies: flow });
  return {
    ...house,
    ...entrance,
    ...managing,
    version,
    recovery,
    keyUses,
    authenticate: createAuthenticate({ ...house, keyUses }),
    authenticateSession: createAuthenticateSession(house),
    health: createHealth(house),
    sends: flow,
    verifies: flow,
    close: async () => {
      guard.stop();
      await keyUses.stop();
      await recovery.drain();
      await house.close();
      await entrance.turnstileHttp.close();
      await managing.managementHttp.close();
    },
  };
};

export type ApiApp = Awaited<ReturnType<typeof createApiApp>>;

/** A worker process: the house, and the channels to call. */
export const createWorkerApp = async (options: AppOptions) => {
  const house = await openHouse(options);
  const { config } = house;
  const whatsappHttp = createHttp({
    timeoutMs: config.whatsappTimeoutMs,
    connections: config.whatsappConnections,
  });
  const telegramHttp = createHttp({ timeoutMs: config.telegramTimeoutMs, connections: 32 });
  const managing = openManagement(config);
  return {
    ...house,
    ...managing,
    noteRefusal: createNoteRefusal(house),
    whatsapp: createWhatsapp({
      http: whatsappHttp,
      baseUrl: config.whatsappBaseUrl,
      apiVersion: config.whatsappApiVersion,
    }),
    telegram: createTelegram({
      http: telegramHttp,
      baseUrl: config.telegramBaseUrl,
      token: config.telegramBotToken,
    }),
    pumping: createPumpingCounter({ ...house, ...guarding(house) }),
    echoWaitMs: config.whatsappEchoWaitMs,
    reachabilityWindowMs: config.reachabilityWindowMs,
    proof: config.telegramLinkProof,
    close: async () => {
      await house.close();
      const all = [whatsappHttp, telegramHttp, managing.managementHttp];
      await Promise.all(all.map((http) => http.close()));
    },
  };
};

export type WorkerApp = Awaited<ReturnType<typeof createWorkerApp>>;

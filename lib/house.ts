import { createEpochStore } from './accounts/epoch-store.ts';
import { createAccountStore } from './accounts/store.ts';
import { createCreditStore } from './billing/credit-store.ts';
import { createFloorStore } from './billing/floor-store.ts';
import { createLedgerStore } from './billing/ledger-store.ts';
import { createPaymentStore } from './billing/payment-store.ts';
import { createPoster } from './billing/post.ts';
import { createPriceStore } from './billing/price-store.ts';
import { createPrices } from './billing/prices.ts';
import { createQuotes } from './billing/quote.ts';
import { createReconcileStore } from './billing/reconcile-store.ts';
import { createCapacityStore } from './capacity/store.ts';
import { createThrottles } from './capacity/throttles.ts';
import { createConnectionStore } from './connections/store.ts';
import {
  countHolds,
  countIdempotency,
  countJob,
  countPostings,
  countSends,
  countTotp,
  countVerifies,
} from './counting.ts';
import { createReservations } from './idempotency/reservations.ts';
import { createIdempotency } from './idempotency/store.ts';
import { createMysql } from './infra/mysql.ts';
import { isOutage } from './infra/outages.ts';
import { createBroker } from './infra/queue/broker.ts';
import { closeRedis, createRedis, redisReady } from './infra/redis.ts';
import { jobs } from './jobs.ts';
import { type Clock, systemClock } from './kernel/clock.ts';
import type { Config } from './kernel/config.ts';
import type { Log } from './kernel/log.ts';
import { createRecipientKeys, type RecipientKeys } from './kernel/recipients.ts';
import { createSealer } from './kernel/secrets.ts';
import { version } from './kernel/version.ts';
import { createRevocations } from './keys/revocations.ts';
import { createKeyStore } from './keys/store.ts';
import { createAdmission } from './limits/admission.ts';
import { createReadLimiter } from './limits/reads.ts';
import { createLinkStore } from './links/store.ts';
import { createAnnouncer } from './messages/announce.ts';
import { createHistory } from './messages/history.ts';
import { createNewsStore } from './messages/news-store.ts';
import { createMessageStore } from './messages/store.ts';
import { createLiveStore } from './otp/store.ts';
import { createPlatform } from './platform/overrides.ts';
import { createAliveFile } from './pulse/alive-file.ts';
import { watchEngines } from './pulse/engines.ts';
import { createHeart } from './pulse/heart.ts';
import { createLines, type Lines } from './pulse/lines.ts';
import { createMetrics } from './pulse/metrics.ts';
import { createPulseStore } from './pulse/store.ts';
import { openTracing } from './pulse/trace.ts';
import { createPumpingStore } from './pumping/store.ts';
import { createRecountStore } from './reports/recount-store.ts';
import { createRollupStore } from './reports/rollup-store.ts';
import { createReportStore } from './reports/store.ts';
import { createTotalsStore } from './reports/totals-store.ts';
import { createRetentionStore } from './retention/store.ts';
import { createChallengeStore } from './security/challenge-store.ts';
import { createCredentialStore } from './security/credential-store.ts';
import { createFactorStore } from './security/factor-store.ts';
import { createSenderWatch } from './sender/health.ts';
import { createPauses } from './sender/pauses.ts';
import { createResolveSender } from './sender/resolve.ts';
import { createSenderTally } from './sender/tally.ts';
import { createSessionStore } from './sessions/store.ts';
import { createSignupStore } from './signup/store.ts';
import { createAttemptStore } from './totp/attempt-store.ts';
import { createGuesses } from './totp/guesses.ts';
import { createTotpStore } from './totp/store.ts';
import { createWebhookStore } from './webhooks/store.ts';

export type AppOptions = {
  config: Config;
  log: Log;
  /** Name of the process, as brokers and logs show it. */
  processName: string;
  clock?: Clock;
};

const patienceMs = 10_000;

const phoneKeysOf = ({ phonePepper: [pepper] }: Config): RecipientKeys => {
  if (!pepper) throw new Error('PHONE_PEPPER is empty');
  return createRecipientKeys(pepper);
};

const openLines = (config: Config, log: Log): Lines =>
  createLines({
    ...{ log, recipients: phoneKeysOf(config) },
    ...{ share: config.logSuccessPercent / 100, slowMs: config.logSlowMs },
  });

/** The sockets of a process. */
const openInfra = async ({ config, log, processName, clock }: Required<AppOptions>) => {
  const metrics = createMetrics();
  const tracing = await openTracing(config, processName);
  const lines = openLines(config, log);
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
    tracing,
    onJob: (settled) => {
      countJob(metrics, settled);
      lines.job(settled);
    },
  });
  return { db, redis, broker, metrics, tracing, lines };
};

type Infra = Awaited<ReturnType<typeof openInfra>>;

/** A send: until its worker answers, what a call without an answer takes, and the wait for a receipt. */
const longestSendMs = (config: Config): number =>
  config.sendDeadlineMs +
  config.reachabilityWindowMs +
  Math.max(config.whatsappTimeoutMs + config.whatsappEchoWaitMs, config.telegramTimeoutMs);

const openStores = (
  { db, redis, broker, metrics }: Infra,
  { config, clock, log }: Required<AppOptions>,
) => {
  const prefix = config.keyPrefix;
  const connections = createConnectionStore(db);
  const prices = createPriceStore(db);
  const revocations = createRevocations({ redis, prefix, store: createEpochStore(db), log });
  const sealer = createSealer(config.sealingKeys);
  return {
    accounts: createAccountStore(db),
    signups: createSignupStore(db),
    challenges: createChallengeStore(db),
    credentials: createCredentialStore(db),
    factors: createFactorStore(db),
    keys: createKeyStore(db),
    sessions: createSessionStore(db),
    ...{ connections, revocations, sealer },
    links: createLinkStore({ db, redis, prefix }),
    live: countVerifies(metrics, createLiveStore(redis, prefix)),
    messages: createMessageStore(db, config.whatsappDeliverySeconds),
    reservations: createReservations(db, () => clock.now()),
    history: createHistory(db),
    idempotency: countIdempotency(
      metrics,
      createIdempotency({ redis, prefix, requestMs: longestSendMs(config) }),
    ),
    admission: createAdmission({ redis, prefix }),
    evidence: countHolds(metrics, createPumpingStore(redis, prefix)),
    reads: createReadLimiter(redis, prefix, {
      onFailOpen: (name) => {
        metrics.failOpen.add(name);
        log.warn({ limit: name }, 'limit decided without redis');
      },
    }),
    recipients: phoneKeysOf(config),
    announcer: countSends(metrics, createAnnouncer(broker)),
    ledger: createLedgerStore(db),
    news: createNewsStore(db),
    payers: createPaymentStore(db),
    credit: createCreditStore(redis, prefix),
    prices,
    platform: createPlatform({ ...{ db, config, revocations, clock, log } }),
    books: createReconcileStore(db),
    floor: createFloorStore(db),
    reports: createReportStore(db),
    rollupStore: createRollupStore(db),
    recounts: createRecountStore(db),
    retention: createRetentionStore(db),
    totals: createTotalsStore(db),
    capacity: createCapacityStore(db),
    throttles: createThrottles(redis, prefix, log),
    webhooks: createWebhookStore(db),
    totp: createTotpStore(db),
    attempts: countTotp(metrics, createAttemptStore(db)),
    totpSealer: config.totpKeys.length > 0 ? createSealer(config.totpKeys) : undefined,
    guesses: createGuesses(redis, prefix),
    resolveSender: createResolveSender({ config, connections, revocations, sealer, clock }),
    senders: createSenderWatch({ redis, prefix, clock, log }),
    pauses: createPauses({ prices, revocations, clock, log }),
    tally: createSenderTally({ redis, prefix, clock, log }),
  };
};

/** What stands between the ledger and those who ask or post. */
const openMoney = (
  house: Awaited<ReturnType<typeof openStores>> &
    Pick<Required<AppOptions>, 'config' | 'clock' | 'log'> &
    Pick<Infra, 'metrics'>,
) => {
  const { config } = house;
  const everywhereMicros = config.priceMicros;
  return {
    poster: countPostings(house.metrics, createPoster(house)),
    quotes: createQuotes({
      ...house,
      prices: createPrices({ ...house, everywhereMicros }),
      trialVerifications: config.trialVerifications,
      sharedCountries: house.platform.sharedCountries,
      sharedHourly: config.sharedHourly,
    }),
  };
};

/** `requests` that are not answered yet; `stopping` once the process was told to end. */
export type Activity = { requests: number; stopping: boolean };

/** The heart that reports what the process counts. */
const openPulse = ({ db, redis, broker, metrics }: Infra, options: Required<AppOptions>) => {
  const { config, clock, log, processName: name } = options;
  const pulses = createPulseStore({ db, redis, prefix: config.keyPrefix });
  const activity: Activity = { requests: 0, stopping: false };
  const heart = createHeart({
    ...{ name, version, pulses, broker, redis, clock, log },
    registry: metrics.registry,
    requests: () => activity.requests,
    alive: createAliveFile(config.heartbeatFile, log),
  });
  watchEngines({ ...{ broker, redis, db }, registry: metrics.registry, vitals: heart.vitals });
  return {
    pulses,
    heart,
    activity,
    onReconciled: metrics.reconciled,
    onRecounted: metrics.recounted,
  };
};

/** What every process shares: sockets, stores and settings, opened together and closed together. */
export const openHouse = async (options: AppOptions) => {
  const full: Required<AppOptions> = { clock: systemClock, ...options };
  const infra = await openInfra(full);
  const stores = openStores(infra, full);
  const { config, clock, log } = full;
  const pulse = openPulse(infra, full);
  // Without Redis the process starts all the same, and answers 503 until it is there.
  await Promise.all([
    infra.broker.start(),
    redisReady(infra.redis, patienceMs)
      .catch(() => undefined)
      .then(pulse.heart.start),
  ]);
  await stores.revocations.start();
  await Promise.all([stores.pauses.start(), stores.platform.start()]);
  const money = openMoney({ ...infra, ...stores, ...full });
  const close = async (): Promise<void> => {
    stores.revocations.stop();
    stores.pauses.stop();
    stores.platform.stop();
    await money.poster.drain();
    await stores.announcer.drain();
    await stores.messages.drain();
    await stores.attempts.drain();
    await infra.broker.close();
    await pulse.heart.stop();
    await infra.tracing.close();
    await closeRedis(infra.redis);
    await infra.db.destroy();
  };
  const { trialVerifications, floorMinimumDaily, codePeppers: peppers } = config;
  const settings = { config, clock, log, peppers, trialVerifications, floorMinimumDaily };
  return { ...infra, ...stores, ...money, ...pulse, ...settings, close };
};

export type House = Awaited<ReturnType<typeof openHouse>>;

// What every process stands on: its sockets, stores, money and pulse, opened together and closed together.
import { createPoster } from './billing/post.ts';
import { createPrices } from './billing/prices.ts';
import { createQuotes } from './billing/quote.ts';
import { countJob, countPostings } from './counting.ts';
import { createMysql } from './infra/mysql.ts';
import { isOutage } from './infra/outages.ts';
import { createBroker } from './infra/queue/broker.ts';
import { closeRedis, createRedis, redisReady } from './infra/redis.ts';
import { jobs } from './jobs.ts';
import { type Clock, systemClock } from './kernel/clock.ts';
import type { Config } from './kernel/config.ts';
import type { Log } from './kernel/log.ts';
import { version } from './kernel/version.ts';
import { createAliveFile } from './pulse/alive-file.ts';
import { watchEngines } from './pulse/engines.ts';
import { createHeart } from './pulse/heart.ts';
import { createLines, type Lines } from './pulse/lines.ts';
import { createMetrics } from './pulse/metrics.ts';
import { createPulseStore } from './pulse/store.ts';
import { openTracing } from './pulse/trace.ts';
import { openStores, phoneKeysOf } from './stores.ts';

export type AppOptions = {
  config: Config;
  log: Log;
  /** Name of the process, as brokers and logs show it. */
  processName: string;
  clock?: Clock;
};

const patienceMs = 10_000;

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

const exposureCaps = (config: Config) => ({
  trialMicros: config.exposureTrialMicros,
  paidMicros: config.exposureMicros,
  timesCharged: config.exposureTimesCharged,
});

/** What stands between the ledger and those who ask or post. */
const openMoney = (
  house: ReturnType<typeof openStores> &
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
      exposure: exposureCaps(config),
      sharedCountries: house.platform.sharedCountries,
      sharedHourly: config.sharedHourly,
    }),
  };
};

/**
 * `requests` that are not answered yet; `stopping` once the process was told to end; `forwardedIgnored` once a request
 * came with X-Forwarded-For while TRUSTED_PROXIES was not set.
 */
export type Activity = { requests: number; stopping: boolean; forwardedIgnored: boolean };

/** The heart that reports what the process counts. */
const openPulse = ({ db, redis, broker, metrics }: Infra, options: Required<AppOptions>) => {
  const { config, clock, log, processName: name } = options;
  const pulses = createPulseStore({ db, redis, prefix: config.keyPrefix });
  const activity: Activity = { requests: 0, stopping: false, forwardedIgnored: false };
  const heart = createHeart({
    ...{ name, version, pulses, broker, redis, clock, log },
    registry: metrics.registry,
    requests: () => activity.requests,
    forwardedIgnored: () => activity.forwardedIgnored,
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
  const settings = {
    config,
    clock,
    log,
    peppers,
    trialVerifications,
    sharedGrant: { unverified: config.sharedUnverified, perVerified: config.sharedPerVerified },
    exposure: exposureCaps(config),
    floorMinimumDaily,
  };
  return { ...infra, ...stores, ...money, ...pulse, ...settings, close };
};

export type House = Awaited<ReturnType<typeof openHouse>>;

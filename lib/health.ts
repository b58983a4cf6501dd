// Whether the engines answer and how the channels are; asked at most once a second.

import type { Database } from './infra/mysql.ts';
import type { Broker } from './infra/queue/broker.ts';
import type { RedisClient } from './infra/redis.ts';
import type { Clock } from './kernel/clock.ts';
import type { Config } from './kernel/config.ts';
import type { ChannelHealth, SenderWatch } from './sender/health.ts';

export type Check = { status: 'ok' | 'down'; latency_ms: number | null };
export type Checks = { redis: Check; mysql: Check; rabbitmq: Check };

const cacheMs = 1_000;
const patienceMs = 900;

const timed = async (work: () => Promise<unknown>): Promise<Check> => {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), patienceMs);
  });
  try {
    await Promise.race([work(), late]);
    return { status: 'ok', latency_ms: Math.round(performance.now() - startedAt) };
  } catch {
    return { status: 'down', latency_ms: null };
  } finally {
    clearTimeout(timer);
  }
};

const down: ChannelHealth = { status: 'down', since: null };

export type Health = {
  check(): Promise<{ checks: Checks; canSend: boolean }>;
  channels(): Promise<{ whatsapp: ChannelHealth; telegram: ChannelHealth }>;
};

export const createHealth = (deps: {
  broker: Pick<Broker, 'ready'>;
  clock: Clock;
  config: Config;
  db: Database;
  redis: RedisClient;
  senders: SenderWatch;
}): Health => {
  const { broker, clock, config, db, redis, senders } = deps;
  let known: { at: number; checks: Promise<Checks> } | undefined;

  const run = async (): Promise<Checks> => {
    const [redisCheck, mysql] = await Promise.all([
      timed(() => redis.get(`${config.keyPrefix}health`)),
      timed(() => db.raw('SELECT 1')),
    ]);
    const rabbitmq: Check = broker.ready()
      ? { status: 'ok', latency_ms: 0 }
      : { status: 'down', latency_ms: null };
    return { redis: redisCheck, mysql, rabbitmq };
  };

  return {
    check: async () => {
      const now = clock.now();
      if (!known || now - known.at >= cacheMs) known = { at: now, checks: run() };
      const checks = await known.checks;
      return { checks, canSend: checks.redis.status === 'ok' && checks.rabbitmq.status === 'ok' };
    },
    channels: async () => ({
      whatsapp: config.whatsappAccessToken
        ? await senders.shown(config.whatsappPhoneNumberId)
        : down,
      telegram: config.telegramBotToken ? await senders.shown('telegram') : down,
    }),
  };
};

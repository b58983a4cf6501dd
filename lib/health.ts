// Whether the engines answer and how the channels are; asked at most once a second.

import type { ConnectionStore } from './connections/store.ts';
import type { Database } from './infra/mysql.ts';
import type { Broker } from './infra/queue/broker.ts';
import type { RedisClient } from './infra/redis.ts';
import type { Clock } from './kernel/clock.ts';
import type { Config } from './kernel/config.ts';
import { inTime } from './kernel/in-time.ts';
import type { ChannelName } from './messages/rules.ts';
import type { ChannelHealth, SenderWatch } from './sender/health.ts';
import type { Pauses } from './sender/pauses.ts';

export type Check = { status: 'ok' | 'down'; latency_ms: number | null };
export type Checks = { redis: Check; mysql: Check; rabbitmq: Check };

const cacheMs = 1_000;
const patienceMs = 900;

const soon = <T>(work: () => Promise<T>): Promise<T> =>
  inTime(work(), patienceMs, () => new Error('no answer in time'));

const timed = async (work: () => Promise<unknown>): Promise<Check> => {
  const startedAt = performance.now();
  try {
    await soon(work);
    return { status: 'ok', latency_ms: Math.round(performance.now() - startedAt) };
  } catch {
    return { status: 'down', latency_ms: null };
  }
};

const down: ChannelHealth = { status: 'down', since: null };

/** Own numbers of customers, by state; null while nobody can say. */
export type ConnectionCounts = { connected: number; broken: number } | null;

export type Channels = {
  whatsapp: ChannelHealth & { connections: ConnectionCounts };
  telegram: ChannelHealth;
};

export type Health = {
  check(): Promise<{ checks: Checks; canSend: boolean }>;
  channels(): Promise<Channels>;
};

export const createHealth = (deps: {
  broker: Pick<Broker, 'ready' | 'look'>;
  clock: Clock;
  config: Config;
  connections: Pick<ConnectionStore, 'counts'>;
  db: Database;
  redis: RedisClient;
  senders: SenderWatch;
  pauses: Pick<Pauses, 'since'>;
}): Health => {
  const { broker, clock, config, connections, db, redis, senders, pauses } = deps;
  let counted: { at: number; counts: Promise<ConnectionCounts> } | undefined;
  let known: { at: number; checks: Promise<Checks> } | undefined;

  /** A connection that stands says nothing while the broker keeps silent: opening a channel takes its answer. */
  const askBroker = async (): Promise<void> => {
    if (!broker.ready()) throw new Error('not connected');
    await broker.look(() => Promise.resolve());
  };

  const run = async (): Promise<Checks> => {
    const [redisCheck, mysql, rabbitmq] = await Promise.all([
      timed(() => redis.get(`${config.keyPrefix}health`)),
      timed(() => db.raw('SELECT 1')),
      timed(askBroker),
    ]);
    return { redis: redisCheck, mysql, rabbitmq };
  };

  const countConnections = (): Promise<ConnectionCounts> => {
    const now = clock.now();
    if (!counted || now - counted.at >= cacheMs) {
      counted = { at: now, counts: soon(connections.counts).catch(() => null) };
    }
    return counted.counts;
  };

  /** What operators decided stands before what the channel shows. */
  const shown = async (channel: ChannelName, senderId: string): Promise<ChannelHealth> => {
    const since = pauses.since(channel, senderId);
    if (since === undefined) return senders.shown(senderId);
    return { status: 'paused', since: new Date(since).toISOString() };
  };

  const shownWhatsapp = (): Promise<ChannelHealth> | ChannelHealth =>
    config.whatsappAccessToken ? shown('whatsapp', config.whatsappPhoneNumberId) : down;

  return {
    check: async () => {
      const now = clock.now();
      if (!known || now - known.at >= cacheMs) known = { at: now, checks: run() };
      const checks = await known.checks;
      return { checks, canSend: checks.redis.status === 'ok' && checks.rabbitmq.status === 'ok' };
    },
    channels: async () => ({
      whatsapp: { ...(await shownWhatsapp()), connections: await countConnections() },
      telegram: config.telegramBotToken ? await shown('telegram', 'telegram') : down,
    }),
  };
};

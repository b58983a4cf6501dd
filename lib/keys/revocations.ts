// News that keys, sessions or accounts changed: every process asks twice a second whether it may trust what it remembers.
import { randomUUID } from 'node:crypto';
import type { EpochStore } from '../accounts/epoch-store.ts';
import { shardOf } from '../accounts/shards.ts';
import type { RedisClient } from '../infra/redis.ts';
import type { Log } from '../kernel/log.ts';
import { createListening, type Witness } from './listening.ts';
import { createTelling } from './telling.ts';

const pollMs = 400;
/** How soon an announcement that reached one witness only is tried again. */
const owedMs = 100;

export type Revocations = {
  /**
   * Tells every process to forget what it remembers of an account, or of everybody without one. Never throws, since
   * what it tells stands already: what could not be said is owed, and said as soon as somebody listens. This process
   * forgets at once.
   */
  announce(accountId?: string): Promise<void>;
  /**
   * Changes with every announcement about the account or about everybody (without an account: about everybody alone)
   * and never comes back; undefined while nothing may be trusted.
   */
  epoch(accountId?: string): string | undefined;
  /** How much was announced so far about anybody: the same before and after a question, nothing came between. */
  news(): number;
  start(): Promise<void>;
  stop(): void;
};

export type RevocationsDeps = {
  redis: RedisClient;
  prefix: string;
  store: EpochStore;
  log: Log;
  /** A clock in ms that never jumps. */
  monotonic?: () => number;
};

const redisWitness = (redis: RedisClient, key: string): Witness => {
  const read = async (): Promise<Map<number, string>> => {
    const found = await redis.hgetall(key);
    return new Map(Object.entries(found).map(([shard, epoch]) => [Number(shard), epoch]));
  };
  return {
    read: async () => {
      const found = await read();
      if (found.has(shardOf())) return found;
      // One that lost its data begins anew, with a value for everybody that was never there.
      await redis.hsetnx(key, String(shardOf()), randomUUID());
      return read();
    },
    write: async (shard, epoch) => {
      await redis.hset(key, String(shard), epoch);
    },
  };
};

/**
 * A change puts a fresh value in MySQL with itself (`advanceEpoch`), so that one whose process dies at once is heard of
 * too; its announcement puts another one in Redis and in MySQL, and each process looks at both. One of them is enough,
 * so a process that has lost its way to one still reaches everybody; nothing is trusted for longer than `trustMs`
 * without Redis. The numbers in what `epoch` gives count what this process noticed: an older state never returns,
 * whatever the engines forget.
 */
export const createRevocations = (deps: RevocationsDeps): Revocations => {
  const { redis, prefix, store: inMysql, log, monotonic = () => performance.now() } = deps;
  const inRedis = redisWitness(redis, `${prefix}keys-epochs`);
  const { hear, ask, epoch, news } = createListening(inRedis, monotonic);
  const { say, repeat } = createTelling(log, (one) => (one === inRedis ? 'redis' : 'mysql'));
  let timers: NodeJS.Timeout[] = [];

  return {
    news,
    epoch: (accountId) => epoch(shardOf(accountId)),
    announce: async (accountId) => {
      const [shard, value] = [shardOf(accountId), randomUUID()];
      hear(shard, value);
      await Promise.all([say(inRedis, shard, value), say(inMysql, shard, value)]);
    },
    start: async () => {
      await Promise.all([ask(inRedis), ask(inMysql)]);
      timers = [
        setInterval(() => void ask(inRedis), pollMs),
        setInterval(() => void ask(inMysql), pollMs),
        setInterval(repeat, owedMs),
      ];
    },
    stop: () => {
      for (const timer of timers) clearInterval(timer);
    },
  };
};

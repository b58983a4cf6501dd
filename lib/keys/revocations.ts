// News that keys, sessions or accounts changed: every process asks twice a second whether it may trust what it remembers.
import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../infra/redis.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { EpochStore } from './epoch-store.ts';

const pollMs = 400;
/** After this long without news, what is remembered is no longer trusted: revocation holds within a second. */
const trustMs = 900;
/** How soon an announcement that reached one witness only is tried again. */
const owedMs = 100;
const heardMax = 8;

export type Revocations = {
  /**
   * Tells every process to forget what it remembers. Never throws, since what it tells stands already: what could
   * not be said is owed, and said as soon as somebody listens. This process forgets at once.
   */
  announce(): Promise<void>;
  /** Changes with every announcement and never comes back; undefined while nothing may be trusted. */
  epoch(): string | undefined;
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

/** A place that keeps the newest epoch. */
type Witness = Pick<EpochStore, 'read' | 'write'>;

const redisWitness = (redis: RedisClient, key: string): Witness => ({
  read: async () => {
    const found = await redis.get(key);
    if (found !== null) return found;
    // One that lost its data begins anew, with a value that was never there.
    await redis.set(key, randomUUID(), 'NX');
    return (await redis.get(key)) ?? randomUUID();
  },
  write: async (epoch) => {
    await redis.set(key, epoch);
  },
});

/** Epochs that were heard lately: one that comes by the other witness too is no news. */
const createHeard = () => {
  const heard: string[] = [];
  return {
    add: (epoch: string): void => {
      heard.push(epoch);
      if (heard.length > heardMax) heard.shift();
    },
    has: (epoch: string): boolean => heard.includes(epoch),
  };
};

/**
 * Each announcement puts a fresh value in Redis and in MySQL, and each process looks at both. One of them is enough to
 * hear of it, so a process that has lost its way to one still reaches everybody; nothing is trusted for longer than
 * `trustMs` without Redis. The number that `epoch` gives counts what this process noticed: an older state never
 * returns, whatever the engines forget.
 */
export const createRevocations = (deps: RevocationsDeps): Revocations => {
  const { redis, prefix, store: inMysql, log, monotonic = () => performance.now() } = deps;
  const inRedis = redisWitness(redis, `${prefix}keys-epoch`);
  const heard = createHeard();
  const seen = new Map<Witness, string>();
  const owed = new Set<Witness>();
  const failing = new Set<Witness>();
  const asking = new Set<Witness>();
  let generation = 0;
  let heardAt = Number.NEGATIVE_INFINITY;
  let timers: NodeJS.Timeout[] = [];

  const isTrusted = (): boolean => monotonic() - heardAt <= trustMs;

  const poll = async (witness: Witness): Promise<void> => {
    // One question at a time: a slow engine is not asked more often for being slow.
    if (asking.has(witness)) return;
    asking.add(witness);
    const asked = monotonic();
    try {
      const epoch = await witness.read();
      const isNews = seen.get(witness) !== epoch && !heard.has(epoch);
      // What was remembered before a silence may have missed what was said in it.
      if (isNews || (witness === inRedis && !isTrusted())) generation++;
      if (isNews) heard.add(epoch);
      seen.set(witness, epoch);
      // The age counts from the question: the answer may have been long on its way.
      if (witness === inRedis) heardAt = asked;
    } catch {
      // The next round asks again; without Redis trust runs out by itself.
    } finally {
      asking.delete(witness);
    }
  };

  const say = async (witness: Witness, epoch: string): Promise<void> => {
    // Not owed while it is being said, so that it is said once at a time.
    owed.delete(witness);
    try {
      await witness.write(epoch);
      failing.delete(witness);
    } catch (error) {
      owed.add(witness);
      if (failing.has(witness)) return;
      failing.add(witness);
      const fields = {
        engine: witness === inRedis ? 'redis' : 'mysql',
        reason: describeError(error),
      };
      log.warn(fields, 'revocation not announced yet');
    }
  };

  return {
    announce: async () => {
      generation++;
      const epoch = randomUUID();
      heard.add(epoch);
      await Promise.all([say(inRedis, epoch), say(inMysql, epoch)]);
      // Whatever was read from the database while this was under way may be of before.
      generation++;
    },
    epoch: () => (isTrusted() ? String(generation) : undefined),
    start: async () => {
      await Promise.all([poll(inRedis), poll(inMysql)]);
      timers = [
        setInterval(() => void poll(inRedis), pollMs),
        setInterval(() => void poll(inMysql), pollMs),
        setInterval(() => {
          for (const witness of owed) void say(witness, randomUUID());
        }, owedMs),
      ];
    },
    stop: () => {
      for (const timer of timers) clearInterval(timer);
    },
  };
};

// News that keys, sessions or accounts changed: every process asks twice a second whether it may trust what it remembers.
import { randomUUID } from 'node:crypto';
import type { EpochStore } from '../accounts/epoch-store.ts';
import type { RedisClient } from '../infra/redis.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';

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

/** What one process has heard: a generation that goes up with every piece of news, and until when it may be trusted. */
const createListening = (inRedis: Witness, monotonic: () => number) => {
  // Epochs of late: one that comes by the other witness too is no news.
  const heard: string[] = [];
  const seen = new Map<Witness, string>();
  const asking = new Set<Witness>();
  let generation = 0;
  let heardAt = Number.NEGATIVE_INFINITY;

  const isTrusted = (): boolean => monotonic() - heardAt <= trustMs;

  const hear = (epoch: string): void => {
    heard.push(epoch);
    if (heard.length > heardMax) heard.shift();
    generation++;
  };

  const take = (witness: Witness, epoch: string, asked: number): void => {
    // What was remembered before a silence may have missed what was said in it.
    if (witness === inRedis && !isTrusted()) generation++;
    if (seen.get(witness) !== epoch && !heard.includes(epoch)) hear(epoch);
    seen.set(witness, epoch);
    // The age counts from the question: the answer may have been long on its way.
    if (witness === inRedis) heardAt = asked;
  };

  return {
    hear,
    epoch: () => (isTrusted() ? String(generation) : undefined),
    /** One question at a time: a slow engine is not asked more often for being slow. */
    ask: async (witness: Witness): Promise<void> => {
      if (asking.has(witness)) return;
      asking.add(witness);
      const asked = monotonic();
      try {
        take(witness, await witness.read(), asked);
      } catch {
        // The next round asks again; without Redis trust runs out by itself.
      } finally {
        asking.delete(witness);
      }
    },
  };
};

/** What one process has to say, and what it still owes. */
const createTelling = (log: Log, nameOf: (witness: Witness) => string) => {
  const owed = new Set<Witness>();
  const failing = new Set<Witness>();

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
      const fields = { engine: nameOf(witness), reason: describeError(error) };
      log.warn(fields, 'revocation not announced yet');
    }
  };

  return {
    say,
    repeat: (): void => {
      for (const witness of owed) void say(witness, randomUUID());
    },
  };
};

/**
 * A change puts a fresh value in MySQL with itself (`advanceEpoch`), so that one whose process dies at once is heard of
 * too; its announcement puts another one in Redis and in MySQL, and each process looks at both. One of them is enough,
 * so a process that has lost its way to one still reaches everybody; nothing is trusted for longer than
 * `trustMs` without Redis. The number that `epoch` gives counts what this process noticed: an older state never
 * returns, whatever the engines forget.
 */
export const createRevocations = (deps: RevocationsDeps): Revocations => {
  const { redis, prefix, store: inMysql, log, monotonic = () => performance.now() } = deps;
  const inRedis = redisWitness(redis, `${prefix}keys-epoch`);
  const { hear, epoch, ask } = createListening(inRedis, monotonic);
  const { say, repeat } = createTelling(log, (one) => (one === inRedis ? 'redis' : 'mysql'));
  let timers: NodeJS.Timeout[] = [];

  return {
    epoch,
    announce: async () => {
      const news = randomUUID();
      hear(news);
      await Promise.all([say(inRedis, news), say(inMysql, news)]);
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

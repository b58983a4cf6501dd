// Attempts per window, over all processes, in Redis.
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { RedisClient } from '../infra/redis.ts';
import type { Clock } from '../kernel/clock.ts';
import { second } from '../kernel/clock.ts';
import { fail, ServiceError } from '../kernel/errors.ts';
import { refusalExtras, refusalOf } from '../limits/answers.ts';

/** So many in a window from the first one on. `name` is part of the Redis key. */
export type CounterRule = { name: string; limit: number; windowMs: number };

/** `subject` is an opaque name. All throw RedisUnavailable. */
export type Counter = {
  /** Counts an attempt before it is judged; a refused one is not counted. @throws RATE_LIMIT_EXCEEDED */
  take(subject: string): Promise<void>;
  giveBack(subject: string): Promise<unknown>;
  clear(subject: string): Promise<unknown>;
};

/** One attempt at several counters: all take it, or none does. */
export type Count = { take(): Promise<void>; giveBack(): Promise<unknown> };

export const createCounter = (
  redis: RedisClient,
  prefix: string,
  { name, limit, windowMs }: CounterRule,
  clock: Clock,
): Counter => {
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: `${prefix}${name}`,
    points: limit,
    duration: windowMs / second,
  });
  const row = { name, limit, windowMs, reason: 'sustained', dimension: 'login' } as const;
  return {
    take: async (subject) => {
      try {
        await limiter.consume(subject);
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        // Refused, so not looked at: it takes nothing either.
        await limiter.reward(subject);
        const refusal = refusalOf(row, error.msBeforeNext, clock.now());
        throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(refusal));
      }
    },
    giveBack: (subject) => limiter.reward(subject),
    clear: (subject) => limiter.delete(subject),
  };
};

/** Whether an error is the refusal of a limit. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof ServiceError && error.code === 'RATE_LIMIT_EXCEEDED';

/** Takes one after the other; when one refuses, those before it are given back. */
export const takeAll = async (counts: readonly Count[]): Promise<void> => {
  const taken: Count[] = [];
  try {
    for (const count of counts) {
      await count.take();
      taken.push(count);
    }
  } catch (error) {
    await giveBackAll(taken);
    throw error;
  }
};

/** Gives back what was taken. Never throws. */
export const giveBackAll = async (counts: readonly Count[]): Promise<void> => {
  await Promise.allSettled(counts.map((count) => count.giveBack()));
};

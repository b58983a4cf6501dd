// The limits of everything that is not a send or verify; with Redis down they hold in this process at a quarter.
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { type RedisClient, RedisUnavailable } from '../infra/redis.ts';
import { second } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { type Refusal, refusalExtras, refusalOf } from './answers.ts';
import { type LimitRow, type ReadRowName, readTable } from './table.ts';

export type ReadAdmission = { admitted: true } | { admitted: false; refusal: Refusal };

export type ReadLimiter = {
  /** Counts one call of `subject` (an id or an opaque hash, never a phone number) in the named row. */
  take(name: ReadRowName, subject: string): Promise<ReadAdmission>;
  /** A status look-up: 60 a minute per message, then 600 a minute per account and mode. */
  takeStatus(accountId: string, mode: 'live' | 'test', messageId: string): Promise<ReadAdmission>;
};

/** Counts one call, or refuses it. @throws RATE_LIMIT_EXCEEDED */
export const takeRead = async (
  reads: ReadLimiter,
  name: ReadRowName,
  subject: string,
): Promise<void> => {
  const taken = await reads.take(name, subject);
  if (!taken.admitted) throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(taken.refusal));
};

export type ReadLimiterOptions = {
  /** Called for each call decided without Redis, with the row's name. */
  onFailOpen?: (name: ReadRowName) => void;
  /** Clock for `resetAt`, in ms. */
  nowMs?: () => number;
};

type Counter = { row: LimitRow; shared: RateLimiterRedis; reserve: RateLimiterMemory };

/** The part of a limit one process grants while it cannot see what the others grant. */
export const reserveOf = (limit: number): number => Math.max(Math.floor(limit / 4), 1);

const createCounter = (redis: RedisClient, keyPrefix: string, row: LimitRow): Counter => {
  const duration = row.windowMs / second;
  return {
    row,
    shared: new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${keyPrefix}${row.key}`,
      points: row.limit,
      duration,
      // Once over, the rest of the window is refused without asking Redis.
      inMemoryBlockOnConsumed: row.limit + 1,
    }),
    reserve: new RateLimiterMemory({
      keyPrefix: row.key,
      points: reserveOf(row.limit),
      duration,
    }),
  };
};

/**
 * The limiter of reads and rare changes. Redis being away never refuses them by itself: then each process grants a
 * quarter of the limit from memory and reports it through `onFailOpen`. Never throws RedisUnavailable.
 */
export const createReadLimiter = (
  redis: RedisClient,
  prefix: string,
  { onFailOpen = () => undefined, nowMs = Date.now }: ReadLimiterOptions = {},
): ReadLimiter => {
  const counters = new Map(
    readTable.map((row) => [row.name, createCounter(redis, `${prefix}read:`, row)]),
  );

  const count = async (name: ReadRowName, counter: Counter, subject: string): Promise<void> => {
    try {
      await counter.shared.consume(subject);
    } catch (error) {
      if (!(error instanceof RedisUnavailable)) throw error;
      onFailOpen(name);
      await counter.reserve.consume(subject);
    }
  };

  const take = async (name: ReadRowName, subject: string): Promise<ReadAdmission> => {
    const counter = counters.get(name);
    if (counter === undefined) throw new TypeError(`no limit named ${name}`);
    try {
      await count(name, counter, subject);
      return { admitted: true };
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      return { admitted: false, refusal: refusalOf(counter.row, refused.msBeforeNext, nowMs()) };
    }
  };

  return {
    take,
    takeStatus: async (accountId, mode, messageId) => {
      const message = await take('status_message', messageId);
      return message.admitted ? take('status_account', `${mode}:${accountId}`) : message;
    },
  };
};

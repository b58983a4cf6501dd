// How often somebody may guess: passwords by address and source, second factors by account (reference 06 section 5).
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { defineScript, type RedisClient } from '../infra/redis.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, hour, minute, second } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { sha256Hex } from '../kernel/secrets.ts';
import { refusalExtras, refusalOf } from '../limits/answers.ts';

/** Failures in a row of one address from one source, then a block that doubles each time. */
export const failuresMax = 10;
export const firstBlockMs = 15 * minute;
export const longestBlockMs = day;

const perEmail = { name: 'login_email', limit: 50, windowMs: day };
const perSource = { name: 'login_source', limit: 100, windowMs: day };
const perAccount = { name: 'second_factor', limit: 10, windowMs: hour };

type Row = { name: string; limit: number; windowMs: number };

// An attempt is counted before its password is looked at, so that a hundred at once are a hundred. KEYS[1] keeps
// the failures in a row, the blocks so far and the end of the present one.
const takeLua = `
local now, most, first, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'fails', 'blocks', 'till')
local fails, blocks, till = tonumber(kept[1] or 0), tonumber(kept[2] or 0), tonumber(kept[3] or 0)
if till > now then return till - now end
fails = fails + 1
if fails >= most then
  till = now + math.min(first * 2 ^ blocks, longest)
  blocks = blocks + 1
  fails = 0
end
redis.call('HSET', KEYS[1], 'fails', fails, 'blocks', blocks, 'till', string.format('%.0f', till))
redis.call('PEXPIRE', KEYS[1], longest * 2)
return 0`;

/** Who tries to log in; `source` is an opaque name of where the call comes from. */
export type Attempt = { email: string; source: string };

export type Throttle = {
  /**
   * Counts an attempt to log in.
   * @throws RATE_LIMIT_EXCEEDED; RedisUnavailable, since no limit is skipped
   */
  take(attempt: Attempt): Promise<void>;
  /** The attempt succeeded: it counts nowhere, and the row of failures ends. */
  clear(attempt: Attempt): Promise<void>;
  /** Counts an attempt at a second factor or a re-authentication. @throws RATE_LIMIT_EXCEEDED */
  takeFactor(accountId: string): Promise<void>;
  /** That attempt succeeded. */
  clearFactor(accountId: string): Promise<void>;
};

const refused = (row: Row, waitMs: number, now: number) =>
  fail(
    'RATE_LIMIT_EXCEEDED',
    refusalExtras(refusalOf({ ...row, reason: 'sustained', dimension: 'login' }, waitMs, now)),
  );

/** Counts over all processes, in Redis. */
export const createThrottle = (redis: RedisClient, prefix: string, clock: Clock): Throttle => {
  const takePair = defineScript<number>(redis, { name: 'tesseraLogin', lua: takeLua, keys: 1 });
  const counter = (row: Row) =>
    new RateLimiterRedis({
      storeClient: redis,
      keyPrefix: `${prefix}${row.name}`,
      points: row.limit,
      duration: row.windowMs / second,
    });
  const counters = [perEmail, perSource, perAccount].map((row) => ({ row, by: counter(row) }));
  const counterOf = (row: Row) => counters.find((candidate) => candidate.row === row)?.by;

  const count = async (row: Row, subject: string): Promise<void> => {
    try {
      await counterOf(row)?.consume(subject);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      throw refused(row, error.msBeforeNext, clock.now());
    }
  };

  const names = ({ email, source }: Attempt) => {
    const address = sha256Hex(email).slice(0, 32);
    return {
      address,
      pair: `${prefix}login_pair:${sha256Hex(`${email}\n${source}`).slice(0, 32)}`,
    };
  };

  return {
    take: async (attempt) => {
      const { address, pair } = names(attempt);
      const args = [clock.now(), failuresMax, firstBlockMs, longestBlockMs];
      const waitMs = await takePair([pair], args);
      const row = { name: 'login_pair', limit: failuresMax, windowMs: firstBlockMs };
      if (waitMs > 0) throw refused(row, waitMs, clock.now());
      await count(perSource, attempt.source);
      await count(perEmail, address);
    },
    clear: async (attempt) => {
      const { address, pair } = names(attempt);
      await Promise.all([
        redis.del(pair),
        counterOf(perSource)?.reward(attempt.source),
        counterOf(perEmail)?.reward(address),
      ]);
    },
    takeFactor: (accountId) => count(perAccount, accountId),
    clearFactor: async (accountId) => {
      await counterOf(perAccount)?.delete(accountId);
    },
  };
};

// How often somebody may guess: passwords by address and source, second factors by account (reference 06 section 5).
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, hour, minute, second } from '../kernel/clock.ts';
import { fail, ServiceError } from '../kernel/errors.ts';
import { sha256Hex } from '../kernel/secrets.ts';
import { refusalExtras, refusalOf } from '../limits/answers.ts';

/** Failures in a row of one address from one source, then a block that doubles each time. */
export const failuresMax = 10;
export const firstBlockMs = 15 * minute;
export const longestBlockMs = day;

export const perEmail = { name: 'login_email', limit: 50, windowMs: day };
export const perSource = { name: 'login_source', limit: 100, windowMs: day };
const perPair = { name: 'login_pair', limit: failuresMax, windowMs: firstBlockMs };
const perCode = { name: 'second_factor', limit: 10, windowMs: hour };
const perPassword = { name: 'reauth_password', limit: 10, windowMs: hour };

type Row = { name: string; limit: number; windowMs: number };

/** What is guessed by somebody who is in already: each kind is counted, and forgiven, by itself. */
export type Guess = 'password' | 'code';

// An attempt is counted before its password is looked at, so that a hundred at once are a hundred. KEYS[1] keeps
// the failures in a row, the blocks so far and the end of the present one. Giving an attempt back undoes the block
// that it began.
const pairLua = `
local now, most, first, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = redis.call('HMGET', KEYS[1], 'fails', 'blocks', 'till')
local fails, blocks, till = tonumber(kept[1] or 0), tonumber(kept[2] or 0), tonumber(kept[3] or 0)
if ARGV[5] == 'back' then
  if fails > 0 then fails = fails - 1
  elseif blocks > 0 and till > now then fails, blocks, till = most - 1, blocks - 1, 0 end
elseif till > now then return till - now
elseif ARGV[5] == 'look' then return 0
else
  fails = fails + 1
  if fails >= most then
    till = now + math.min(first * 2 ^ blocks, longest)
    blocks = blocks + 1
    fails = 0
  end
end
redis.call('HSET', KEYS[1], 'fails', fails, 'blocks', blocks, 'till', string.format('%.0f', till))
redis.call('PEXPIRE', KEYS[1], longest * 2)
return 0`;

/** Who tries to log in; `source` is an opaque name of where the call comes from. */
export type Attempt = { email: string; source: string };

export type Throttle = {
  /**
   * Counts an attempt to log in, then lets `prove` look at the password. One that was never looked at (no room, an
   * engine away) is given back.
   * @throws RATE_LIMIT_EXCEEDED; RedisUnavailable, since no limit is skipped; whatever `prove` throws
   */
  attempting<T>(attempt: Attempt, prove: () => Promise<T>): Promise<T>;
  /** The attempt succeeded: it counts nowhere, and the row of failures ends. Never throws: what it proved stands. */
  clear(attempt: Attempt): Promise<void>;
  /** The address has a new password: what was guessed at the old one keeps its owner out no longer. Never throws. */
  forget(attempt: Attempt): Promise<void>;
  /**
   * The same for a guess of somebody who is in already. A right one ends the count of its kind.
   * @throws RATE_LIMIT_EXCEEDED, whatever `prove` throws
   */
  guessing(kind: Guess, accountId: string, prove: () => Promise<void>): Promise<void>;
};

const refused = (row: Row, waitMs: number, now: number) =>
  fail(
    'RATE_LIMIT_EXCEEDED',
    refusalExtras(refusalOf({ ...row, reason: 'sustained', dimension: 'login' }, waitMs, now)),
  );

const wrong = new Set(['INVALID_CREDENTIALS', 'INVALID_CODE']);

/** Whether an error says that what was guessed is wrong. */
export const isVerdict = (error: unknown): boolean =>
  error instanceof ServiceError && wrong.has(error.code);

const namesOf = ({ email, source }: Attempt) => ({
  address: sha256Hex(email).slice(0, 32),
  pair: sha256Hex(`${email}\n${source}`).slice(0, 32),
});

/** Failures in a row of an address from a source. */
const createPairs = (redis: RedisClient, prefix: string, clock: Clock) => {
  const script = defineScript<number>(redis, { name: 'tesseraLogin', lua: pairLua, keys: 1 });
  const keyOf = (pair: string) => `${prefix}login_pair:${pair}`;
  const run = (pair: string, what: 'look' | 'take' | 'back') =>
    script([keyOf(pair)], [clock.now(), failuresMax, firstBlockMs, longestBlockMs, what]);
  const ask = async (pair: string, what: 'look' | 'take'): Promise<void> => {
    const waitMs = await run(pair, what);
    if (waitMs > 0) throw refused(perPair, waitMs, clock.now());
  };
  return {
    ask,
    giveBack: (pair: string) => run(pair, 'back'),
    clear: (pair: string) => redis.del(keyOf(pair)),
  };
};

/** Plain counters per window. */
const createCounter = (redis: RedisClient, prefix: string, row: Row, clock: Clock) => {
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: `${prefix}${row.name}`,
    points: row.limit,
    duration: row.windowMs / second,
  });
  return {
    take: async (subject: string): Promise<void> => {
      try {
        await limiter.consume(subject);
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        // Refused, so not looked at: it takes nothing either.
        await limiter.reward(subject);
        throw refused(row, error.msBeforeNext, clock.now());
      }
    },
    giveBack: (subject: string) => limiter.reward(subject),
    clear: (subject: string) => limiter.delete(subject),
  };
};

/** Counts over all processes, in Redis. */
export const createThrottle = (redis: RedisClient, prefix: string, clock: Clock): Throttle => {
  const pairs = createPairs(redis, prefix, clock);
  const counterOf = (row: Row) => createCounter(redis, prefix, row, clock);
  const [sources, addresses] = [counterOf(perSource), counterOf(perEmail)];
  const guesses = { password: counterOf(perPassword), code: counterOf(perCode) };

  /** Takes one after the other; one that refuses gives back what was taken before it. */
  const take = async ({ source }: Attempt, { address, pair }: ReturnType<typeof namesOf>) => {
    // The pair is counted last: an attempt that is refused elsewhere is no failure of it.
    await pairs.ask(pair, 'look');
    await sources.take(source);
    try {
      await addresses.take(address);
      await pairs.ask(pair, 'take').catch(async (error: unknown) => {
        await addresses.giveBack(address);
        throw error;
      });
    } catch (error) {
      await sources.giveBack(source);
      throw error;
    }
  };

  return {
    attempting: async (attempt, prove) => {
      const names = namesOf(attempt);
      await take(attempt, names);
      try {
        return await prove();
      } catch (error) {
        if (isVerdict(error)) throw error;
        const { address, pair } = names;
        await Promise.allSettled([
          ...[pairs.giveBack(pair), sources.giveBack(attempt.source)],
          addresses.giveBack(address),
        ]);
        throw error;
      }
    },
    clear: async (attempt) => {
      const { address, pair } = namesOf(attempt);
      await Promise.allSettled([
        ...[pairs.clear(pair), sources.giveBack(attempt.source)],
        addresses.giveBack(address),
      ]);
    },
    forget: async (attempt) => {
      const { address, pair } = namesOf(attempt);
      await Promise.allSettled([pairs.clear(pair), addresses.clear(address)]);
    },
    guessing: async (kind, accountId, prove) => {
      const counter = guesses[kind];
      await counter.take(accountId);
      try {
        await prove();
      } catch (error) {
        if (!isVerdict(error)) await counter.giveBack(accountId).catch(() => undefined);
        throw error;
      }
      // What was proven stands, and may be used up by it.
      await counter.clear(accountId).catch(() => undefined);
    },
  };
};

// Failures in a row, and the waits behind them that double: over all processes, in Redis.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { refusalExtras, refusalOf } from '../limits/answers.ts';

/** So many failures in a row, then a wait that doubles each time up to the longest. `name` is part of the Redis key. */
export type StreakRule = {
  name: string;
  failures: number;
  firstWaitMs: number;
  longestWaitMs: number;
};

/** `subject` is an opaque name, never an address or an e-mail. All throw RedisUnavailable. */
export type Streaks = {
  /** @throws RATE_LIMIT_EXCEEDED while the subject waits; counts nothing */
  look(subject: string): Promise<void>;
  /** Counts an attempt before it is judged. @throws RATE_LIMIT_EXCEEDED while the subject waits */
  take(subject: string): Promise<void>;
  /** The attempt was never judged: it counts nowhere, and the wait that it began ends. */
  giveBack(subject: string): Promise<void>;
  /** A right one: the row of failures and the waits end. */
  clear(subject: string): Promise<void>;
};

// An attempt is counted before it is judged, so that a hundred at once are a hundred. KEYS[1] keeps the failures in a
// row, the waits so far and the end of the present one. It is forgotten after two of the longest waits without an
// attempt.
const streakLua = `
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

/** The streaks of one rule. */
export const createStreaks = (
  redis: RedisClient,
  prefix: string,
  rule: StreakRule,
  clock: Clock,
): Streaks => {
  const { name, failures, firstWaitMs, longestWaitMs } = rule;
  const script = defineScript<number>(redis, { name: 'tesseraStreak', lua: streakLua, keys: 1 });
  const keyOf = (subject: string) => `${prefix}${name}:${subject}`;
  const run = (subject: string, what: 'look' | 'take' | 'back') =>
    script([keyOf(subject)], [clock.now(), failures, firstWaitMs, longestWaitMs, what]);
  const ask = async (subject: string, what: 'look' | 'take'): Promise<void> => {
    const waitMs = await run(subject, what);
    if (waitMs <= 0) return;
    const row = {
      name,
      limit: failures,
      windowMs: firstWaitMs,
      reason: 'sustained',
      dimension: 'login',
    } as const;
    throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(refusalOf(row, waitMs, clock.now())));
  };
  return {
    look: (subject) => ask(subject, 'look'),
    take: (subject) => ask(subject, 'take'),
    giveBack: async (subject) => {
      await run(subject, 'back');
    },
    clear: async (subject) => {
      await redis.del(keyOf(subject));
    },
  };
};

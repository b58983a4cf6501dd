// Wrong codes of a phone: five within 15 minutes, then a block; apart from those of one-time codes.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { personOf } from '../kernel/recipients.ts';
import { blockMs, failedAttempts } from './rules.ts';

// KEYS failures, block; ARGV now, window ms, attempts, right (1 or 0). A right code is answered like any other while
// the block stands, so that nobody learns by being blocked whether it was right.
const judgeLua = `
local now, window, attempts = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local blocked = tonumber(redis.call('GET', KEYS[2]) or 0)
if blocked > now then return {'blocked', blocked - now} end
while true do
  local oldest = redis.call('LINDEX', KEYS[1], -1)
  if not oldest or tonumber(oldest) > now - window then break end
  redis.call('RPOP', KEYS[1])
end
if ARGV[4] == '1' then return {'right', attempts - redis.call('LLEN', KEYS[1])} end
local failures = redis.call('LPUSH', KEYS[1], now)
redis.call('PEXPIRE', KEYS[1], window)
if failures >= attempts then
  redis.call('SET', KEYS[2], string.format('%.0f', now + window), 'PX', window)
  redis.call('DEL', KEYS[1])
  return {'wrong', 0}
end
return {'wrong', attempts - failures}`;

export type Judgement =
  | { kind: 'blocked'; waitMs: number }
  /** Guesses left before the block. */
  | { kind: 'right' | 'wrong'; remaining: number };

export type Guesses = {
  /** Counts a wrong code; lets a right one pass unless the phone is blocked. Throws RedisUnavailable. */
  judge(recipient: string, right: boolean, now: number): Promise<Judgement>;
  /** A code was accepted: the failures before it are forgotten. */
  clear(recipient: string): Promise<void>;
};

export const createGuesses = (redis: RedisClient, prefix: string): Guesses => {
  const script = defineScript<['blocked' | 'right' | 'wrong', number]>(redis, {
    ...{ name: 'tesseraTotp', lua: judgeLua, keys: 2 },
  });
  const keys = (recipient: string) => [
    `${prefix}totpf:{${personOf(recipient)}}`,
    `${prefix}totpb:{${personOf(recipient)}}`,
  ];
  return {
    judge: async (recipient, right, now) => {
      const [kind, value] = await script(keys(recipient), [
        ...[now, blockMs, failedAttempts, right ? 1 : 0],
      ]);
      return kind === 'blocked' ? { kind, waitMs: value } : { kind, remaining: value };
    },
    clear: async (recipient) => {
      await redis.del(keys(recipient)[0] ?? '');
    },
  };
};

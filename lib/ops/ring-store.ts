// The figures of the last hour and day in Redis: two rings, each as long as its span.
import { defineScript, type RedisClient } from '../infra/redis.ts';
import { day, hour, minute, second } from '../kernel/clock.ts';
import type { Sampled } from './rules.ts';

export const rings = {
  hour: { stepMs: 5 * second, spanMs: hour },
  day: { stepMs: minute, spanMs: day },
} as const;
export type RingName = keyof typeof rings;

// Several ops processes may look: the first one to come with a step writes it.
const appendLua = `
local last = redis.call('LINDEX', KEYS[1], -1)
if last and cjson.decode(last).step >= tonumber(ARGV[1]) then return 0 end
redis.call('RPUSH', KEYS[1], ARGV[2])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[3]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
`;

export type RingStore = ReturnType<typeof createRingStore>;

/** @throws RedisUnavailable from every call */
export const createRingStore = (redis: RedisClient, prefix: string) => {
  const append = defineScript<number>(redis, { name: 'opsAppend', lua: appendLua, keys: 1 });
  const key = (ring: RingName): string => `${prefix}ops:ring:${ring}`;

  return {
    /** Adds a sample unless its step has one; answers whether it did. */
    append: async (ring: RingName, sample: Sampled): Promise<boolean> => {
      const { stepMs, spanMs } = rings[ring];
      const step = Math.floor(sample.at / stepMs);
      const text = JSON.stringify({ step, ...sample });
      return (await append([key(ring)], [step, text, spanMs / stepMs, 2 * spanMs])) === 1;
    },

    /** Samples that are not older than the span, the oldest first; only the newest `most`. */
    read: async (
      ring: RingName,
      now: number,
      most = Number.MAX_SAFE_INTEGER,
    ): Promise<Sampled[]> => {
      const { stepMs, spanMs } = rings[ring];
      const count = Math.min(most, spanMs / stepMs);
      const texts = await redis.lrange(key(ring), -count, -1);
      const samples = texts.map((text) => JSON.parse(text) as Sampled);
      return samples.filter(({ at }) => at > now - spanMs);
    },
  };
};

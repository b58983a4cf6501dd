// The figures of the last hour and day in Redis: two rings, each as long as its span, by the clock of Redis.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript, serverClockLua } from '../infra/redis-script.ts';
import { day, hour, minute, second } from '../kernel/clock.ts';
import type { Counted, Sampled } from './rules.ts';

export const rings = {
  hour: { stepMs: 5 * second, spanMs: hour },
  day: { stepMs: minute, spanMs: day },
} as const;
export type RingName = keyof typeof rings;

// Several ops processes may look: the first one to come with a step writes it. One step of the future cannot lock
// the ring: steps go by the clock of Redis, which all share.
const appendLua = `${serverClockLua}
local step = math.floor(now / tonumber(ARGV[2]))
local last = redis.call('LINDEX', KEYS[1], -1)
if last then
  local said = cjson.decode(last)
  -- Whoever wrote meanwhile has counted what this sample counts.
  if said.step == step or (ARGV[7] ~= '' and said.at ~= tonumber(ARGV[7])) then return 0 end
end
redis.call('RPUSH', KEYS[1], '{"step":' .. text(step) .. ',' .. ARGV[3])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[4]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if ARGV[6] ~= '' then redis.call('SET', KEYS[2], ARGV[6], 'PX', ARGV[5]) end
return 1
`;

const readLua = `${serverClockLua}
return {text(now), redis.call('LRANGE', KEYS[1], -tonumber(ARGV[2]), -1), redis.call('GET', KEYS[2])}
`;

/** What was kept so far, at the time of Redis. */
export type Past = {
  now: number;
  /** Samples that are not older than the span, the oldest first. */
  samples: Sampled[];
  /** What every process had settled by the newest sample of the hour; undefined when nobody knows. */
  counted: Counted | undefined;
};

export type RingStore = ReturnType<typeof createRingStore>;

/** @throws RedisUnavailable from every call */
export const createRingStore = (redis: RedisClient, prefix: string) => {
  const base = `${prefix}{ops}:ring`;
  const keysOf = (ring: RingName): string[] => [`${base}:${ring}`, `${base}:counted`];
  const append = defineScript<number>(redis, { name: 'opsAppend', lua: appendLua, keys: 2 });
  const readAll = defineScript<[string, string[], string | null]>(redis, {
    ...{ name: 'opsRead', lua: readLua, keys: 2 },
  });

  return {
    /**
     * Adds a sample unless its step has one or the newest is another than that `at` the sample goes on from, and what
     * the processes had settled by then; answers whether it did.
     */
    append: async (
      ring: RingName,
      sample: Sampled,
      after: { at?: number | undefined; counted?: Counted } = {},
    ): Promise<boolean> => {
      const { stepMs, spanMs } = rings[ring];
      const rest = JSON.stringify(sample).slice(1);
      const by = after.counted ? JSON.stringify([...after.counted]) : '';
      const args = ['', stepMs, rest, spanMs / stepMs, 2 * spanMs, by, after.at ?? ''];
      return (await append(keysOf(ring), args)) === 1;
    },

    /** The past of a span; only the newest `most` samples. */
    read: async (ring: RingName, most = Number.MAX_SAFE_INTEGER): Promise<Past> => {
      const { stepMs, spanMs } = rings[ring];
      const count = Math.min(most, spanMs / stepMs);
      const [time, texts, by] = await readAll(keysOf(ring), ['', count]);
      const now = Number(time);
      const samples = texts.map((text) => JSON.parse(text) as Sampled);
      return {
        now,
        samples: samples.filter(({ at }) => at > now - spanMs),
        counted: by ? new Map(JSON.parse(by) as [string, never][]) : undefined,
      };
    },
  };
};

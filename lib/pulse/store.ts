// The heartbeats in Redis: one key per process, and an index of them; both go by the clock of Redis.
import type { Database } from '../infra/mysql.ts';
import type { RedisClient } from '../infra/redis.ts';
import { defineScript, serverClockLua } from '../infra/redis-script.ts';
import { type PackedMetric, packMetric, unpackMetric } from './pack.ts';
import { judge, type Pulse, type SeenPulse, shownMs } from './rules.ts';

export type PulseStore = {
  /** Keeps a heartbeat; resolves with the time of Redis. @throws RedisUnavailable */
  beat(pulse: Pulse): Promise<number>;
  /** A process that ends as it should leaves no trace. @throws RedisUnavailable */
  leave(id: string): Promise<void>;
  /** The living, and those lost within the last ten minutes, by name. @throws RedisUnavailable */
  readPulses(): Promise<SeenPulse[]>;
  /** The time of MySQL in ms. @throws when it is away */
  mysqlNow(): Promise<number>;
};

const mysqlPatienceMs = 2_000;

// Both keys lie in one slot of a Cluster.
const beatLua = `${serverClockLua}
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
redis.call('ZADD', KEYS[2], text(now), ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return text(now)
`;

const readLua = `${serverClockLua}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now - tonumber(ARGV[2])))
return {text(now), redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}
`;

type Written = Omit<Pulse, 'metrics'> & { metrics: PackedMetric[] };

const write = (pulse: Pulse): string =>
  JSON.stringify({ ...pulse, metrics: pulse.metrics.map(packMetric) } satisfies Written);

/** Undefined for the words of another version that cannot be read: one process must not take the others with it. */
const read = (text: string): Pulse | undefined => {
  try {
    const written = JSON.parse(text) as Written;
    return { ...written, metrics: written.metrics.map(unpackMetric) };
  } catch {
    return undefined;
  }
};

/** Pairs of a flat list: member, score, member, score. */
const scored = (flat: readonly string[]): { id: string; heardAt: number }[] =>
  flat.flatMap((id, index) => (index % 2 === 0 ? [{ id, heardAt: Number(flat[index + 1]) }] : []));

const indexOf = (prefix: string): string => `${prefix}{pulse}`;
const keyOf = (prefix: string, id: string): string => `${indexOf(prefix)}:${id}`;

/** Reads heartbeats; writes none. */
export const createPulseReader = (
  redis: RedisClient,
  prefix: string,
): Pick<PulseStore, 'readPulses'> => {
  const readAll = defineScript<[string, string[]]>(redis, {
    name: 'pulseRead',
    lua: readLua,
    keys: 1,
  });

  return {
    readPulses: async () => {
      const [now, flat] = await readAll([indexOf(prefix)], ['', shownMs]);
      const found = await Promise.all(
        scored(flat).map(async ({ id, heardAt }) => {
          const text = await redis.get(keyOf(prefix, id));
          const pulse = text === null ? undefined : read(text);
          return pulse ? [judge(pulse, heardAt, Number(now))] : [];
        }),
      );
      return found.flat().sort((a, b) => (a.id < b.id ? -1 : 1));
    },
  };
};

export const createPulseStore = (deps: {
  db: Database;
  redis: RedisClient;
  prefix: string;
}): PulseStore => {
  const { db, redis, prefix } = deps;
  const index = indexOf(prefix);
  const beat = defineScript<string>(redis, { name: 'pulseBeat', lua: beatLua, keys: 2 });

  return {
    beat: async (pulse) =>
      Number(await beat([keyOf(prefix, pulse.id), index], ['', write(pulse), pulse.id, shownMs])),
    leave: async (id) => {
      await redis.zrem(index, id);
      await redis.del(keyOf(prefix, id));
    },
    readPulses: createPulseReader(redis, prefix).readPulses,
    mysqlNow: async () => {
      const asked = db.raw('SELECT UNIX_TIMESTAMP(NOW(6)) * 1000 AS now');
      // A connection that keeps silent is thrown away with its question.
      const [rows] = await asked.timeout(mysqlPatienceMs);
      return Number((rows as { now: string }[])[0]?.now);
    },
  };
};

// What is in Redis under a prefix, so that a test can say that nothing changed there.
import { Redis } from 'ioredis';
import { testUrl } from './names.ts';

export type RedisKeys = {
  /** Names of the keys that begin with `prefix`, in order. */
  names(prefix: string): Promise<string[]>;
  /** The same keys with their values, and the milliseconds they have left. */
  snapshot(prefix: string): Promise<Snapshot>;
  /** Removes the keys that begin with `prefix`. */
  remove(prefix: string): Promise<void>;
  /** Leaves the keys that begin with `prefix` so many ms more. */
  leave(prefix: string, ms: number): Promise<void>;
  close(): void;
};

export type Snapshot = Map<string, { value: string; leftMs: number }>;

// Longer than any test looks away: what had less left may have come to its end by itself.
const soonMs = 15_000;

/** Names of the keys that are new, have another value, or are gone before their time. */
export const changesBetween = (before: Snapshot, after: Snapshot): string[] => [
  ...[...after].flatMap(([name, { value }]) =>
    before.get(name)?.value === value ? [] : [`set ${name}`],
  ),
  ...[...before].flatMap(([name, { leftMs }]) =>
    after.has(name) || (leftMs >= 0 && leftMs < soonMs) ? [] : [`removed ${name}`],
  ),
];

// The time left is asked first: a key that is there afterwards had at least that.
const lookScript = `
  local found = {}
  for _, name in ipairs(KEYS) do
    local left = redis.call('PTTL', name)
    local value = redis.call('DUMP', name)
    if value then found[#found + 1] = { name, left, value } end
  end
  return found`;
const keysAtOnce = 1_000;

/** Looks into the test's Redis. */
export const openRedisKeys = (): RedisKeys => {
  const redis = new Redis(testUrl('TESSERA_TEST_REDIS_URL').href);
  const names = async (prefix: string): Promise<string[]> => {
    const found = new Set<string>();
    let cursor = '0';
    do {
      const [next, page] = await redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 20_000);
      for (const name of page) found.add(name);
      cursor = next;
    } while (cursor !== '0');
    return [...found].sort();
  };
  return {
    names,
    snapshot: async (prefix) => {
      const all = await names(prefix);
      const found: Snapshot = new Map();
      for (let from = 0; from < all.length; from += keysAtOnce) {
        const page = all.slice(from, from + keysAtOnce);
        const looked = await redis.callBuffer('EVAL', lookScript, page.length, ...page);
        for (const [name, leftMs, value] of looked as [Buffer, number, Buffer][]) {
          found.set(name.toString(), { value: value.toString('base64'), leftMs });
        }
      }
      return found;
    },
    remove: async (prefix) => {
      const all = await names(prefix);
      for (let from = 0; from < all.length; from += keysAtOnce) {
        await redis.unlink(...all.slice(from, from + keysAtOnce));
      }
    },
    leave: async (prefix, ms) => {
      for (const name of await names(prefix)) await redis.pexpire(name, ms);
    },
    close: () => redis.disconnect(),
  };
};

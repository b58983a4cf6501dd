// What is in Redis under a prefix, so that a test can say that nothing changed there.
import { Redis } from 'ioredis';
import { testUrl } from './names.ts';

export type RedisKeys = {
  /** Names of the keys that begin with `prefix`, in order. */
  names(prefix: string): Promise<string[]>;
  /** The same keys with their serialised values (not their lifetimes). */
  snapshot(prefix: string): Promise<Record<string, string>>;
  close(): void;
};

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
      const values = await Promise.all(all.map((name) => redis.dumpBuffer(name)));
      return Object.fromEntries(
        all.map((name, index) => [name, values[index]?.toString('base64') ?? '']),
      );
    },
    close: () => redis.disconnect(),
  };
};

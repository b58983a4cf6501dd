// Sessions of the console that were ended before their time, in Redis and in the process that ended them.
import type { RedisClient } from '../infra/redis.ts';
import type { Clock } from '../kernel/clock.ts';
import { sha256Hex } from '../kernel/secrets.ts';

/** Logouts that one process remembers by itself; the oldest goes when one more comes. */
const rememberedMax = 1_000;

export type LogoutStore = {
  /** Ends a session until the time (ms) at which it ends by itself. Never throws: this process remembers it in any case. */
  end(cookie: string, until: number): Promise<void>;
  /**
   * Whether the session was ended. Never throws: the console has to work while Redis is away, and then knows the
   * logouts of its own process alone.
   */
  isEnded(cookie: string): Promise<boolean>;
};

export const createLogoutStore = (
  redis: RedisClient,
  prefix: string,
  clock: Clock,
): LogoutStore => {
  const nameOf = (cookie: string): string => sha256Hex(cookie).slice(0, 32);
  const keyOf = (name: string): string => `${prefix}ops:logout:${name}`;
  const remembered = new Set<string>();

  const remember = (name: string): void => {
    const [oldest] = remembered;
    if (remembered.size >= rememberedMax && oldest !== undefined) remembered.delete(oldest);
    remembered.add(name);
  };

  return {
    end: async (cookie, until) => {
      const name = nameOf(cookie);
      remember(name);
      const leftMs = until - clock.now();
      if (leftMs > 0) {
        await redis.set(keyOf(name), '1', 'PX', Math.ceil(leftMs)).catch(() => undefined);
      }
    },
    isEnded: async (cookie) => {
      const name = nameOf(cookie);
      if (remembered.has(name)) return true;
      return (await redis.exists(keyOf(name)).catch(() => 0)) > 0;
    },
  };
};

// The wish that an order over dead letters ends, in Redis: its process may be another than the one that is asked.

import type { RedisClient } from '../infra/redis.ts';
import { minute } from '../kernel/clock.ts';

export type StopStore = {
  /** @throws RedisUnavailable */
  ask(id: string): Promise<void>;
  /** Whether somebody asked. @throws RedisUnavailable */
  isAsked(id: string): Promise<boolean>;
};

export const createStopStore = (redis: RedisClient, prefix: string): StopStore => {
  const key = (id: string): string => `${prefix}ops:stop:${id}`;
  return {
    ask: async (id) => {
      await redis.set(key(id), '1', 'PX', minute);
    },
    isAsked: async (id) => (await redis.get(key(id))) !== null,
  };
};

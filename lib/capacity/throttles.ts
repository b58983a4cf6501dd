// The last refusals of an account, for its limits document: in Redis, a few, and gone after a week.
import type { RedisClient } from '../infra/redis.ts';
import { day, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';

const keep = 20;
const lifeSeconds = (7 * day) / second;

/** A refusal as the document shows it; in the wire's own names. */
export type Throttle = {
  at: string;
  code: string;
  reason: string;
  layer: string;
  dimension: string;
  limit: number | null;
  window_seconds: number | null;
  retry_after_seconds: number | null;
  operation: string;
  /** Of the key that was used; null: a session. */
  mode: 'live' | 'test' | null;
  request_id: string;
};

export type Throttles = {
  /** Never throws: a refusal that is not remembered is still a refusal. */
  note(accountId: string, throttle: Throttle): void;
  /** Newest first. */
  recent(accountId: string): Promise<Throttle[]>;
};

/** Older ones say nothing of the mode. */
const readThrottle = (text: string): Throttle => ({ mode: null, ...JSON.parse(text) });

export const createThrottles = (redis: RedisClient, prefix: string, log: Log): Throttles => {
  const key = (accountId: string): string => `${prefix}throttles:{${accountId}}`;
  const write = async (accountId: string, throttle: Throttle): Promise<void> => {
    await redis.lpush(key(accountId), JSON.stringify(throttle));
    await redis.ltrim(key(accountId), 0, keep - 1);
    await redis.expire(key(accountId), lifeSeconds);
  };
  return {
    note: (accountId, throttle) => {
      write(accountId, throttle).catch((error: unknown) =>
        log.debug({ reason: describeError(error) }, 'refusal not remembered'),
      );
    },
    recent: async (accountId) =>
      (await redis.lrange(key(accountId), 0, keep - 1)).map(readThrottle),
  };
};

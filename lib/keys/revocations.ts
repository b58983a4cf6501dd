// News that keys or accounts changed: every process asks twice a second whether it may still trust what it remembers.
import type { RedisClient } from '../infra/redis.ts';

const pollMs = 400;
/** After this long without news, what is remembered is no longer trusted: revocation holds within a second. */
const trustMs = 900;

export type Revocations = {
  /** Tells every process to forget what it remembers of keys and accounts. */
  announce(): Promise<void>;
  /** A number that changes with every announcement; undefined while it cannot be known. */
  epoch(): string | undefined;
  start(): Promise<void>;
  stop(): void;
};

/** Counts changes in one Redis key. `monotonic` is a clock in ms that never jumps. */
export const createRevocations = (
  redis: RedisClient,
  prefix: string,
  monotonic: () => number = () => performance.now(),
): Revocations => {
  const key = `${prefix}keys-epoch`;
  let known: { epoch: string; at: number } | undefined;
  let timer: NodeJS.Timeout | undefined;

  const poll = async (): Promise<void> => {
    const asked = monotonic();
    const epoch = await redis.get(key).catch(() => undefined);
    // The age counts from the question: the answer may have been long on its way.
    if (epoch !== undefined) known = { epoch: epoch ?? '0', at: asked };
  };

  return {
    announce: async () => {
      await redis.incr(key);
      known = undefined;
      await poll();
    },
    epoch: () => (known && monotonic() - known.at <= trustMs ? known.epoch : undefined),
    start: async () => {
      await poll();
      timer = setInterval(() => void poll(), pollMs);
    },
    stop: () => clearInterval(timer),
  };
};

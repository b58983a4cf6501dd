// How calls to the channels went, minute by minute for a day: counted in memory, added up in Redis once a second.
import type { ChannelResult } from '../channels/channel.ts';
import type { RedisClient } from '../infra/redis.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, day, minute, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { bucketOf, fieldOf, foldTallies, isTrouble, type TallyView } from './tally-rules.ts';

export type SenderTally = Chore & {
  /** Takes note of a call that took `ms`. Asks nobody. */
  note(senderId: string, result: ChannelResult, ms: number): void;
  /** The last `minutes` of a sender. @throws RedisUnavailable */
  read(senderId: string, minutes: number): Promise<TallyView>;
  /** Senders that had trouble within the last ten minutes. @throws RedisUnavailable */
  troubled(): Promise<Set<string>>;
};

type Counts = Map<string, number>;

const flushMs = second;
const troubledMinutes = 10;

/** Calls of one process go in; everybody reads those of all processes. */
export const createSenderTally = (deps: {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  log: Log;
}): SenderTally => {
  const { redis, prefix, clock, log } = deps;
  let open = new Map<string, Counts>();
  /** Who had trouble, by the key of the minute: so that nobody must ask for every sender there is. */
  let trouble = new Map<string, Set<string>>();
  const troubleKey = (at: number): string => `${prefix}tally:trouble:${Math.floor(at / minute)}`;
  const keyOf = (senderId: string, at: number): string =>
    `${prefix}tally:${senderId}:${Math.floor(at / minute)}`;

  const add = (key: string, field: string, by: number): void => {
    const counts = open.get(key) ?? new Map<string, number>();
    counts.set(field, (counts.get(field) ?? 0) + by);
    open.set(key, counts);
  };

  const flush = async (): Promise<void> => {
    const full = open;
    open = new Map();
    const inTrouble = trouble;
    trouble = new Map();
    // What Redis does not take is not counted: a figure for the eye is not worth a queue in memory.
    await Promise.all(
      [...full].flatMap(([key, counts]) => [
        ...[...counts].map(([field, by]) => redis.hincrby(key, field, by)),
        redis.pexpire(key, day + minute),
      ]),
    );
    await Promise.all(
      [...inTrouble].flatMap(([key, ids]) => [
        redis.sadd(key, ...ids),
        redis.pexpire(key, 2 * troubledMinutes * minute),
      ]),
    );
  };
  const chore = repeat(flush, flushMs, log);

  return {
    note: (senderId, result, ms) => {
      const key = keyOf(senderId, clock.now());
      add(key, fieldOf(result), 1);
      add(key, bucketOf(ms), 1);
      add(key, 'ms', Math.round(ms));
      if (!isTrouble(fieldOf(result))) return;
      const at = troubleKey(clock.now());
      trouble.set(at, (trouble.get(at) ?? new Set()).add(senderId));
    },
    read: async (senderId, minutes) => {
      const now = clock.now();
      const times = Array.from({ length: minutes }, (_, ago) => now - (minutes - 1 - ago) * minute);
      const hashes = await Promise.all(times.map((at) => redis.hgetall(keyOf(senderId, at))));
      return foldTallies(
        hashes.map((hash, n) => ({
          at: Math.floor((times[n] ?? now) / minute) * minute,
          fields: Object.entries(hash).map(([field, count]) => [field, Number(count)]),
        })),
      );
    },
    troubled: async () => {
      const now = clock.now();
      const keys = Array.from({ length: troubledMinutes }, (_, ago) =>
        troubleKey(now - ago * minute),
      );
      const found = await Promise.all(keys.map((key) => redis.smembers(key)));
      return new Set(found.flat());
    },
    start: chore.start,
    stop: async () => {
      await chore.stop();
      await flush().catch(() => undefined);
    },
  };
};

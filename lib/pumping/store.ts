// The pumping guard in Redis: evidence and holds per account and prefix, the set of held prefixes, countries' tallies.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { hour, minute } from '../kernel/clock.ts';
import { idBytes, newId } from '../kernel/ids.ts';
import {
  forgetMs,
  type Hold,
  judgedFrom,
  longestHoldMs,
  reporting,
  type Settled,
  type Tally,
  windowMs,
} from './rules.ts';
import * as scripts from './scripts.ts';

/** A prefix as keys name it: its account, and an HMAC instead of its digits. */
export type PrefixRef = { accountId: string; prefixKey: string };

/** A hold as every API process sees it; the prefix is masked. */
export type HeldPrefix = PrefixRef & Hold & { prefix: string; country: string };

/** What is known of a prefix after a batch, and its last hold, which may be over. */
export type PrefixTally = Tally & { hold: Hold | undefined };

export type Recorded = {
  /** By prefix key. */
  prefixes: Map<string, PrefixTally>;
  /** Those of the messages that say something about their country too. */
  counted: Settled[];
};

/** The held prefixes, and the epoch that names this state of them ('' when there never was one). */
export type HeldSet = { epoch: string; holds: HeldPrefix[] };

const bucketMs = 5 * minute;
const buckets = windowMs / bucketMs;

const keysUnder = (prefix: string) => ({
  reports: (accountId: string) => `${prefix}pump:{${accountId}}:reports`,
  /** Unconverted, verified and hold. */
  ofPrefix: ({ accountId, prefixKey }: PrefixRef) =>
    ['u', 'v', 'hold'].map((part) => `${prefix}pump:{${accountId}}:${part}:${prefixKey}`) as [
      string,
      string,
      string,
    ],
  held: `${prefix}pump:{held}`,
  country: (country: string, part: 's' | 'v', bucket: number) =>
    `${prefix}pump:{c:${country}}:${part}:${bucket}`,
  alarm: (country: string, now: number) =>
    `${prefix}pump:{c:${country}}:alarm:${Math.floor(now / hour)}`,
});
type Keys = ReturnType<typeof keysUnder>;

type Cell = string | number | null;

const fieldsPerPrefix = 7;

const toTally = (cells: readonly Cell[]): PrefixTally => {
  const [unconverted, verified, level, ...rest] = cells.map(Number) as [number, number, number];
  const [since = 0, until = 0, settledThen = 0, verifiedThen = 0] = rest as number[];
  const hold = { level, since, until, settled: settledThen, verified: verifiedThen };
  return { settled: unconverted + verified, verified, hold: level > 0 ? hold : undefined };
};

// Short and exact: the 16 bytes of the id as text.
const member = (id: string): string => idBytes(id).toString('base64url');

const prefixSide = (redis: RedisClient, keys: Keys) => {
  const record = defineScript<Cell[]>(redis, { name: 'pumpRecord', lua: scripts.record });
  const hold = defineScript<number>(redis, { name: 'pumpHold', lua: scripts.hold, keys: 3 });

  return {
    /** Adds messages of one account, each with the key of its prefix; one that was added before changes nothing. */
    record: async (
      accountId: string,
      messages: readonly (Settled & { prefixKey: string })[],
      now: number,
    ): Promise<Recorded> => {
      const prefixKeys = [...new Set(messages.map(({ prefixKey }) => prefixKey))];
      const reply = await record(
        [
          keys.reports(accountId),
          ...prefixKeys.flatMap((prefixKey) => keys.ofPrefix({ accountId, prefixKey })),
        ],
        [
          ...[now - windowMs, windowMs, now - reporting.withinMs, reporting.withinMs],
          ...[reporting.delivers, judgedFrom.prefix],
          ...messages.flatMap(({ prefixKey, origin, verified, id, at, sentAt }) => [
            ...[prefixKeys.indexOf(prefixKey) + 1, origin === 'deliver' ? 1 : 0, verified ? 1 : 0],
            ...[member(id), at, sentAt],
          ]),
        ],
      );
      const tallies = prefixKeys.map((prefixKey, index) => {
        const from = index * fieldsPerPrefix;
        return [prefixKey, toTally(reply.slice(from, from + fieldsPerPrefix))] as const;
      });
      const flags = reply.slice(prefixKeys.length * fieldsPerPrefix);
      return {
        prefixes: new Map(tallies),
        counted: messages.filter((_, index) => flags[index] === 1),
      };
    },

    /** Begins `next` unless `previous` is no longer the last hold: another worker was first. Spends the evidence. */
    hold: async (ref: PrefixRef, previous: Hold | undefined, next: Hold): Promise<boolean> => {
      const [unconverted, verified, hash] = keys.ofPrefix(ref);
      const keepMs = next.until - next.since + forgetMs;
      const begun = await hold(
        [hash, unconverted, verified],
        [previous?.until ?? '', keepMs, ...Object.entries(next).flat()],
      );
      return begun === 1;
    },
  };
};

/** The same hold is the same text: the members stand in one order. */
const heldText = ({ accountId, prefixKey, prefix, country, ...hold }: HeldPrefix): string => {
  const { level, since, until, settled, verified } = hold;
  return JSON.stringify({
    ...{ accountId, prefixKey, prefix, country },
    ...{ level, since, until, settled, verified },
  });
};

const heldSide = (redis: RedisClient, keys: Keys) => {
  const publish = defineScript<number>(redis, {
    name: 'pumpPublish',
    lua: scripts.publish,
    keys: 1,
  });

  return {
    /** Shows a hold to every API process; as often as one likes. */
    publish: async (held: HeldPrefix, now: number): Promise<void> => {
      const field = `${held.accountId}:${held.prefixKey}`;
      await publish([keys.held], [field, heldText(held), newId(), now, longestHoldMs]);
    },

    /** The held prefixes when they are not those of `epoch` any more. */
    heldSince: async (epoch: string | undefined): Promise<HeldSet | undefined> => {
      const current = (await redis.hget(keys.held, 'epoch')) ?? '';
      if (current === epoch) return undefined;
      const { epoch: _, ...fields } = await redis.hgetall(keys.held);
      const holds = Object.values(fields).map((text) => JSON.parse(text) as HeldPrefix);
      return { epoch: current, holds };
    },
  };
};

// Distinct messages are estimated (HyperLogLog, 0.8 %): at-least-once safe in a bounded space, and this only alarms.
const countrySide = (redis: RedisClient, keys: Keys) => {
  const bucketsUntil = (now: number): number[] =>
    Array.from({ length: buckets + 1 }, (_, ago) => Math.floor(now / bucketMs) - ago);

  const add = async (country: string, part: 's' | 'v', messages: readonly Settled[]) => {
    const byBucket = Map.groupBy(messages, ({ at }) => Math.floor(at / bucketMs));
    await Promise.all(
      [...byBucket].flatMap(([bucket, some]) => {
        const key = keys.country(country, part, bucket);
        return [
          redis.pfadd(key, ...some.map(({ id }) => member(id))),
          redis.pexpire(key, windowMs + 2 * bucketMs),
        ];
      }),
    );
  };

  return {
    /** Adds settled messages of one country; one that was added before changes nothing. */
    addToCountry: async (country: string, messages: readonly Settled[]): Promise<void> => {
      const verified = messages.filter((message) => message.verified);
      await Promise.all([add(country, 's', messages), add(country, 'v', verified)]);
    },

    /** The country's messages of the last hour, in steps of five minutes. */
    countryTally: async (country: string, now: number): Promise<Tally> => {
      const count = (part: 's' | 'v') =>
        redis.pfcount(bucketsUntil(now).map((bucket) => keys.country(country, part, bucket)));
      const [settled, verified] = await Promise.all([count('s'), count('v')]);
      return { settled, verified };
    },

    /** True for one caller in each clock hour. */
    claimAlarm: async (country: string, now: number): Promise<boolean> =>
      (await redis.set(keys.alarm(country, now), '1', 'PX', hour, 'NX')) === 'OK',
  };
};

export type PumpingStore = ReturnType<typeof createPumpingStore>;

/** The guard's keys; every call throws RedisUnavailable when Redis is away. Times are ms. */
export const createPumpingStore = (redis: RedisClient, prefix: string) => {
  const keys = keysUnder(prefix);
  return {
    ...prefixSide(redis, keys),
    ...heldSide(redis, keys),
    ...countrySide(redis, keys),
  };
};

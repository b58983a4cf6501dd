// The pumping guard in Redis: evidence and holds per account, what accounts do together, held prefixes, countries' tallies.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { hour, minute } from '../kernel/clock.ts';
import { idBytes, newId } from '../kernel/ids.ts';
import type { Codes, Delivers, Share } from './judge.ts';
import {
  type Evidence,
  forgetMs,
  type GroundedHold,
  graceMs,
  type HoldReason,
  holdReasons,
  isEarly,
  longestHoldMs,
  openKeepMs,
  reporting,
  sourceKeptMs,
  standing,
  type Tally,
  windowMs,
} from './rules.ts';
import * as scripts from './scripts.ts';

/** A block of numbers, or a country, of one account as keys name it: a block by an HMAC instead of its digits. */
export type PrefixRef = { accountId: string; prefixKey: string };

/** A hold as every API process sees it; the prefix is masked, and null when a whole country is held. */
export type HeldPrefix = PrefixRef & GroundedHold & { prefix: string | null; country: string };

/** What is known of an account's block or country after a batch, and its last hold, which may be over. */
export type ScopeTally = {
  codes: Tally & Pick<Codes, 'open'> & { young: number };
  delivers: Omit<Delivers, 'everywhere'>;
  hold: GroundedHold | undefined;
};

export type Recorded = {
  /** It is known for codes that are entered. */
  good: boolean;
  /** All its delivers of the window that it checks itself. */
  delivers: number;
  /** Where it was made from, as opaque names; empty when that is not known any more. */
  sources: string[];
  /** By the key of the block or country. */
  scopes: Map<string, ScopeTally>;
  /** Those of the messages that say something about their country too. */
  counted: Evidence[];
};

/** One message, with the key of its block of numbers. */
export type Keyed = Evidence & { prefixKey: string };

/** A share in a group. Those of a hold that was begun stay as evidence for others, until the window is over. */
export type GroupShare = Share & { spent: boolean };

/** The held prefixes, and the epoch that names this state of them ('' when there never was one). */
export type HeldSet = { epoch: string; holds: HeldPrefix[] };

const bucketMs = 5 * minute;
const buckets = windowMs / bucketMs;

/** Messages of one kind that are kept for an account's block or country; the newest stay. */
const mostMessages = 1_000;
/** Accounts that are kept for a block or country; those with the most codes that nobody entered stay. */
const mostShares = 500;

/** Holds of all accounts at one time; those that end first leave. */
const mostHolds = 5_000;

/** The key of an account's country among the keys of its blocks. */
export const countryKey = (country: string): string => `c:${country}`;

const keysUnder = (prefix: string) => ({
  /** Reports, codes entered and not entered, delivers, source. */
  ofAccount: (accountId: string) =>
    ['reports', 'ok', 'no', 'd'].map((part) => `${prefix}pump:{${accountId}}:${part}`),
  source: (accountId: string) => `${prefix}pump:{${accountId}}:source`,
  /** Open, unconverted, verified, delivers, those with a receipt, hold. */
  ofPrefix: ({ accountId, prefixKey }: PrefixRef) =>
    ['o', 'u', 'v', 't', 'r', 'hold'].map(
      (part) => `${prefix}pump:{${accountId}}:${part}:${prefixKey}`,
    ),
  group: (groupKey: string) => `${prefix}pump:{g:${groupKey}}`,
  held: `${prefix}pump:{held}`,
  country: (country: string, part: 's' | 'v', bucket: number) =>
    `${prefix}pump:{c:${country}}:${part}:${bucket}`,
  alarm: (country: string, now: number) =>
    `${prefix}pump:{c:${country}}:alarm:${Math.floor(now / hour)}`,
});
type Keys = ReturnType<typeof keysUnder>;

type Cell = string | number | null;

const accountCells = 4;
const tallyCells = 7;
const scopeCells = tallyCells + scripts.holdFields.length;

const toReason = (cell: Cell | undefined): HoldReason =>
  holdReasons.find((reason) => reason === cell) ?? 'unverified';

const toHold = (cells: readonly Cell[]): GroundedHold | undefined => {
  const [level = 0, since = 0, until = 0, settled = 0, verified = 0, spent = 0] = cells.map(Number);
  if (until === 0) return undefined;
  const [, , , , , , reason, early, accounts, ...together] = cells;
  return {
    level,
    since,
    until,
    settled,
    verified,
    spent,
    reason: toReason(reason),
    early: early === '1',
    accounts: Number(accounts),
    together: { settled: Number(together[0]), verified: Number(together[1]) },
  };
};

const holdArgs = (hold: GroundedHold): (string | number)[] => {
  const { level, since, until, settled, verified, spent, reason, early, accounts } = hold;
  const values = {
    level,
    since,
    until,
    settled,
    verified,
    spent,
    reason,
    accounts,
    early: early ? 1 : 0,
    settledTogether: hold.together.settled,
    verifiedTogether: hold.together.verified,
  };
  return scripts.holdFields.flatMap((field) => [field, values[field]]);
};

const toTally = (cells: readonly Cell[]): ScopeTally => {
  const [settled = 0, verified = 0, open = 0, young = 0, known = 0, arrived = 0, here = 0] = cells
    .slice(0, tallyCells)
    .map(Number);
  return {
    codes: { settled, verified, open, young },
    delivers: { known, arrived, here },
    hold: toHold(cells.slice(tallyCells)),
  };
};

// Short and exact: the 16 bytes of the id as text.
const member = (id: string): string => idBytes(id).toString('base64url');

const recordArgs = (messages: readonly Keyed[], scopes: readonly string[], now: number) => [
  ...[now, windowMs, reporting.withinMs, standing.withinMs, graceMs, openKeepMs],
  ...[reporting.delivers, standing.verified, standing.unverified, mostMessages],
  ...messages.flatMap(({ prefixKey, country, origin, sign, arrived, id, at, sentAt }) => [
    ...[scopes.indexOf(prefixKey) + 1, scopes.indexOf(countryKey(country)) + 1],
    ...[origin === 'deliver' ? 1 : 0, sign, arrived ? 1 : 0, member(id), at, sentAt],
  ]),
];

const accountSide = (redis: RedisClient, keys: Keys) => {
  const record = defineScript<Cell[]>(redis, { name: 'pumpRecord', lua: scripts.record });
  const hold = defineScript<number>(redis, { name: 'pumpHold', lua: scripts.hold, keys: 6 });

  const run = async (
    accountId: string,
    messages: readonly Keyed[],
    scopes: readonly string[],
    now: number,
  ): Promise<Recorded> => {
    const reply = await record(
      [
        ...keys.ofAccount(accountId),
        keys.source(accountId),
        ...scopes.flatMap((prefixKey) => keys.ofPrefix({ accountId, prefixKey })),
      ],
      recordArgs(messages, scopes, now),
    );
    const [, good, delivers, source] = reply;
    const tallies = scopes.map((scope, index) => {
      const from = accountCells + index * scopeCells;
      return [scope, toTally(reply.slice(from, from + scopeCells))] as const;
    });
    const flags = reply.slice(accountCells + scopes.length * scopeCells);
    return {
      good: good === 1,
      delivers: Number(delivers),
      sources: String(source)
        .split(' ')
        .filter((name) => name !== ''),
      scopes: new Map(tallies),
      counted: messages.filter((_, index) => flags[index] === 1),
    };
  };

  return {
    /** Remembers where an account was made from, as opaque names; they hold no space. */
    rememberSources: async (accountId: string, sources: readonly string[]): Promise<void> => {
      await redis.set(keys.source(accountId), sources.join(' '), 'PX', sourceKeptMs);
    },

    /** Adds what events say about messages of one account; what was added before changes nothing. */
    record: (accountId: string, messages: readonly Keyed[], now: number): Promise<Recorded> => {
      const named = messages.flatMap(({ prefixKey, country }) => [prefixKey, countryKey(country)]);
      return run(accountId, messages, [...new Set(named)], now);
    },

    /** What is known of an account, and of one of its blocks or countries. */
    look: ({ accountId, prefixKey }: PrefixRef, now: number): Promise<Recorded> =>
      run(accountId, [], [prefixKey], now),

    /**
     * Begins `next` unless `previous` is no longer the last hold: another worker was first. Spends the evidence, unless
     * the hold rests on open codes.
     */
    hold: async (
      ref: PrefixRef,
      previous: GroundedHold | undefined,
      next: GroundedHold,
    ): Promise<boolean> => {
      const [open, unconverted, verified, all, arrived, hash] = keys.ofPrefix(ref) as [
        ...[string, string, string, string, string, string],
      ];
      const keepMs = next.until - next.since + forgetMs;
      const begun = await hold(
        [hash, open, unconverted, verified, all, arrived],
        [...[previous?.until ?? '', keepMs, isEarly(next) ? 0 : 1], ...holdArgs(next)],
      );
      return begun === 1;
    },
  };
};

type ShareText = { a: string; s: number; v: number; o: number; f: Share['fault'] } & {
  from: string[];
  spent: boolean;
  at: number;
  w: number;
};

const shareText = (share: GroupShare, now: number): string => {
  const { accountId: a, settled: s, verified: v, open: o, fault: f, sources: from, spent } = share;
  const text: ShareText = { a, s, v, o, f, from: [...from], spent, at: now, w: s - v + o };
  return JSON.stringify(text);
};

const toShare = (text: string): GroupShare => {
  const { a, s, v, o, f, from, spent } = JSON.parse(text) as ShareText;
  // A good account is not listed.
  const whose = { accountId: a, good: false, sources: from };
  return { ...whose, settled: s, verified: v, open: o, fault: f, spent };
};

/** A field of a group and what it becomes; undefined takes it out. */
export type GroupChange = { field: string; share: GroupShare | undefined };

const groupSide = (redis: RedisClient, keys: Keys) => {
  const group = defineScript<string[]>(redis, {
    name: 'pumpGroup',
    lua: scripts.group,
    keys: 1,
  });

  return {
    /** Changes shares of a block of numbers or a country of all accounts; answers all that are left. */
    changeGroup: async (
      groupKey: string,
      changes: readonly GroupChange[],
      now: number,
    ): Promise<GroupShare[]> => {
      const texts = await group(
        [keys.group(groupKey)],
        [
          ...[now, windowMs, windowMs, mostShares],
          ...changes.flatMap(({ field, share }) => [field, share ? shareText(share, now) : '']),
        ],
      );
      return texts.map(toShare);
    },
  };
};

/** The same hold is the same text: the members stand in one order. */
const heldText = (held: HeldPrefix): string => {
  const { accountId, prefixKey, prefix, country, reason, early, accounts, together } = held;
  const { level, since, until, settled, verified, spent } = held;
  return JSON.stringify({
    accountId,
    prefixKey,
    prefix,
    country,
    reason,
    early,
    accounts,
    together: { settled: together.settled, verified: together.verified },
    level,
    since,
    until,
    settled,
    verified,
    spent,
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
      await publish([keys.held], [field, heldText(held), newId(), now, longestHoldMs, mostHolds]);
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

  const add = async (country: string, part: 's' | 'v', messages: readonly Evidence[]) => {
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
    addToCountry: async (country: string, messages: readonly Evidence[]): Promise<void> => {
      const verified = messages.filter(({ sign }) => sign === 'verified');
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
    ...accountSide(redis, keys),
    ...groupSide(redis, keys),
    ...heldSide(redis, keys),
    ...countrySide(redis, keys),
  };
};

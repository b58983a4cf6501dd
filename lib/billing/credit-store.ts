// Credit in Redis: balances as they were last posted, what open codes hold of them, and what unpaid messages cost.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { day, hour, minute } from '../kernel/clock.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import type { Plan } from '../messages/rules.ts';
import { keep, look, note, release, reserve } from './credit-lua.ts';
import { type Balance, exposureHours, hourOf, minimumBalanceMicros, owedHoldMs } from './rules.ts';

/** A balance is asked of MySQL anew after this long without news, so that lost news does not last. */
const balanceKeepMs = minute;
const holdsKeepMs = owedHoldMs + hour;
const sharedKeepMs = day;
const exposedKeepMs = (exposureHours + 1) * hour;

/** What an account's unverified messages of the last day may cost the platform; micro-USD. */
export type ExposureCaps = {
  /** Before the first deposit. */
  trialMicros: number;
  /** After it, or so many times what was charged in the same time, whichever is more. */
  paidMicros: number;
  timesCharged: number;
};

export type ReserveRequest = {
  accountId: string;
  /** Undefined: looks, and holds nothing. */
  holdId: string | undefined;
  holdForMs: number;
  priceMicros: number;
  /** What the message costs the platform if nobody verifies it; 0 is no exposure. */
  costMicros: number;
  capMicros: number | null;
  plan: Plan;
  trialPaused: boolean;
  /** Set when the shared number sends: the most of an account in an hour. */
  shared: { hourly: number } | undefined;
  exposure: ExposureCaps;
  now: number;
};

/** What has to be read from MySQL before credit can be decided. */
export type Missing = { balance: boolean; shared: boolean; exposure: boolean };

export type Reserved =
  | { kind: 'ok'; plan: Plan; priceMicros: number }
  | { kind: 'miss'; missing: Missing }
  /** `waitMs` and `limitMicros` with what is exposed. */
  | { kind: 'refused'; code: ErrorCode; waitMs: number; limitMicros: number };

/** Messages of an account on the shared number, before its first deposit. */
export type SharedCount = { unverified: number; verified: number };

/** What unverified messages cost the platform, and what was charged, in the hours that count; micro-USD. */
export type Exposure = { costMicros: number; chargedMicros: number };

/** One hour of it (UTC hour since 1970). */
export type ExposureHour = { kind: 'cost' | 'charged'; hour: number; micros: number };

/** What open codes hold of an account, and what it sent. */
export type Holding = {
  /** What they may still cost: what could not be free if all of them succeeded. */
  micros: number;
  /** How many of them may use a free verification. */
  free: number;
  /** Undefined when it has to be counted anew. */
  shared: SharedCount | undefined;
  sharedHour: number;
  /** Undefined when it has to be counted anew. */
  exposure: Exposure | undefined;
  /** When the oldest of what is exposed leaves (ms); null: nothing is. */
  exposureResetAt: number | null;
};

export type Noted = {
  /** Codes that were charged. */
  holds?: readonly string[];
  /** What was charged just now, by the hour it was for. */
  charged?: ReadonlyMap<number, number>;
  /** As MySQL has it, where Redis knew nothing. */
  shared?: SharedCount;
  exposure?: { hours: readonly ExposureHour[]; now: number };
};

export type CreditStore = {
  /** Decides and holds in one step. Throws RedisUnavailable. */
  reserve(request: ReserveRequest): Promise<Reserved>;
  /** A hold that stands lasts until then (ms), which may be later or earlier than before. */
  keep(accountId: string, holdId: string, until: number): Promise<void>;
  /** What is held and sent at `now` (ms), with so many free verifications left. Throws RedisUnavailable. */
  look(accountId: string, given: { now: number; freeLeft: number }): Promise<Holding>;
  /**
   * Takes a hold back, and what its message cost: it failed for good. `unsent`: no channel took it, so that it is no
   * send of the hour on the shared number.
   */
  release(accountId: string, holdId: string, given: { unsent: boolean }): Promise<void>;
  /** Notes a balance (an older one is ignored), drops the holds of what was charged, and counts it. */
  note(accountId: string, balance: Balance, more?: Noted): Promise<void>;
};

const letterOf = { cost: 'u', charged: 'c' } as const;

/** The arguments that tell the script of exposed hours: whether they are all there is, how many, and which. */
const exposureArgs = ({ charged = new Map(), exposure }: Noted): (string | number)[] => {
  const now = [...charged].flatMap(([at, micros]) => ['c', at, micros]);
  const all = exposure?.hours.flatMap(({ kind, hour: at, micros }) => [letterOf[kind], at, micros]);
  const entries = all ?? now;
  return [all === undefined ? 0 : 1, entries.length / 3, ...entries];
};

const toReserved = (reply: (string | number)[]): Reserved => {
  const [answer, first, second, third] = reply;
  if (answer === 'ok') return { kind: 'ok', plan: first as Plan, priceMicros: Number(second) };
  if (answer !== 'miss') {
    const [waitMs, limitMicros] = [Number(first ?? 0), Number(second ?? 0)];
    return { kind: 'refused', code: answer as ErrorCode, waitMs, limitMicros };
  }
  const missing = { balance: first === 1, shared: second === 1, exposure: third === 1 };
  return { kind: 'miss', missing };
};

type Looked = [
  held: string,
  free: number,
  unverified: string,
  verified: string,
  sent: string,
  cost: string,
  charged: string,
  oldest: string,
];

const toHolding = (reply: Looked): Holding => {
  const [held, free, unverified, verified, sent, cost, charged, oldest] = reply;
  return {
    micros: Number(held),
    free: Number(free),
    shared:
      unverified === ''
        ? undefined
        : { unverified: Number(unverified), verified: Number(verified) },
    sharedHour: Number(sent),
    exposure:
      cost === '' ? undefined : { costMicros: Number(cost), chargedMicros: Number(charged) },
    exposureResetAt: oldest === '' ? null : (Number(oldest) + exposureHours) * hour,
  };
};

const keyNames = [
  'balance',
  'hold-ends',
  'hold-sum',
  'shared',
  'hold-free',
  'hold-open',
  'exposed',
] as const;

const reserveArgs = (request: ReserveRequest): (string | number)[] => [
  request.now,
  request.holdId ?? '',
  request.priceMicros,
  request.now + request.holdForMs,
  minimumBalanceMicros,
  request.capMicros ?? -1,
  request.plan,
  request.trialPaused ? 1 : 0,
  request.shared ? 1 : 0,
  request.costMicros,
  request.shared?.hourly ?? 0,
  holdsKeepMs,
  request.exposure.trialMicros,
  request.exposure.paidMicros,
  request.exposure.timesCharged,
  exposedKeepMs,
];

const noteArgs = (balance: Balance, more: Noted): (string | number)[] => [
  balance.seq,
  balance.micros,
  balance.trialGranted,
  balance.trialUsed,
  balance.deposited ? 1 : 0,
  balance.spentHour,
  balance.spentMicros,
  balance.shared.unverified,
  balance.shared.perVerified,
  balanceKeepMs,
  more.shared?.unverified ?? '',
  more.shared?.verified ?? 0,
  sharedKeepMs,
  more.exposure === undefined ? 0 : hourOf(more.exposure.now),
  exposedKeepMs,
  ...exposureArgs(more),
  ...(more.holds ?? []),
];

export const createCreditStore = (redis: RedisClient, prefix: string): CreditStore => {
  const define = <Reply>(name: string, lua: string) =>
    defineScript<Reply>(redis, { name, lua, keys: keyNames.length });
  const scripts = {
    reserve: define<(string | number)[]>('tesseraReserve', reserve),
    keep: define<number>('tesseraKeep', keep),
    look: define<Looked>('tesseraLook', look),
    release: define<number>('tesseraRelease', release),
    note: define<number>('tesseraNote', note),
  };
  const keys = (accountId: string): string[] =>
    keyNames.map((name) => `${prefix}${name}:{${accountId}}`);

  return {
    reserve: async (request) =>
      toReserved(await scripts.reserve(keys(request.accountId), reserveArgs(request))),
    keep: async (accountId, holdId, until) => {
      await scripts.keep(keys(accountId), [holdId, until, holdsKeepMs]);
    },
    look: async (accountId, { now, freeLeft }) =>
      toHolding(await scripts.look(keys(accountId), [now, freeLeft])),
    release: async (accountId, holdId, { unsent }) => {
      await scripts.release(keys(accountId), [holdId, unsent ? 1 : 0]);
    },
    note: async (accountId, balance, more = {}) => {
      await scripts.note(keys(accountId), noteArgs(balance, more));
    },
  };
};

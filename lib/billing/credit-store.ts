// Credit in Redis: balances as they were last posted, and what open codes hold of them; MySQL is the truth.
import type { RedisClient } from '../infra/redis.ts';
import { defineScript } from '../infra/redis-script.ts';
import { day, hour, minute } from '../kernel/clock.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import type { Plan } from '../messages/rules.ts';
import { keep, look, note, release, reserve } from './credit-lua.ts';
import { type Balance, minimumBalanceMicros, owedHoldMs } from './rules.ts';

/** A balance is asked of MySQL anew after this long without news, so that lost news does not last. */
const balanceKeepMs = minute;
const holdsKeepMs = owedHoldMs + hour;
const sharedKeepMs = day;

/** A hold of an open code: what names it, and what it holds (micro-USD; on the trial nothing but its place). */
export type Hold = { id: string; priceMicros: number };

export type ReserveRequest = {
  accountId: string;
  /** Undefined: looks, and holds nothing. */
  holdId: string | undefined;
  holdForMs: number;
  priceMicros: number;
  capMicros: number | null;
  plan: Plan;
  trialPaused: boolean;
  /** Set when the shared number sends: the most of an account on trial, and of any in an hour. */
  shared: { trialAllowance: number; hourly: number } | undefined;
  now: number;
};

export type Reserved =
  | { kind: 'ok'; plan: Plan; priceMicros: number }
  | { kind: 'miss' }
  | { kind: 'refused'; code: ErrorCode };

/** What open codes hold of an account, and what it sent over the shared number. */
export type Holding = {
  micros: number;
  free: number;
  /** In all, as the gate counts; undefined when it has to be counted anew. */
  sharedTotal: number | undefined;
  sharedHour: number;
};

export type CreditStore = {
  /** Decides and holds in one step. Throws RedisUnavailable. */
  reserve(request: ReserveRequest): Promise<Reserved>;
  /** A hold that stands lasts until then (ms), which may be later or earlier than before. */
  keep(accountId: string, hold: Hold, until: number): Promise<void>;
  /** What is held and sent at `now` (ms). Throws RedisUnavailable. */
  look(accountId: string, now: number): Promise<Holding>;
  /** Takes a hold back, and its place on the shared number. */
  release(accountId: string, hold: Hold, shared: boolean): Promise<void>;
  /** Notes a balance (an older one is ignored) and drops holds that are settled. */
  note(
    accountId: string,
    balance: Balance,
    more?: { holds?: readonly Hold[]; sharedTotal?: number },
  ): Promise<void>;
};

const memberOf = ({ id, priceMicros }: Hold): string => `${id}:${priceMicros}`;

export const createCreditStore = (redis: RedisClient, prefix: string): CreditStore => {
  const scripts = {
    reserve: defineScript<[string, string?, (string | number)?]>(redis, {
      ...{ name: 'tesseraReserve', lua: reserve, keys: 5 },
    }),
    keep: defineScript<number>(redis, { name: 'tesseraKeep', lua: keep, keys: 5 }),
    look: defineScript<(string | number)[]>(redis, {
      ...{ name: 'tesseraLook', lua: look, keys: 5 },
    }),
    release: defineScript<number>(redis, { name: 'tesseraRelease', lua: release, keys: 5 }),
    note: defineScript<number>(redis, { name: 'tesseraNote', lua: note, keys: 5 }),
  };
  const keys = (accountId: string): string[] =>
    ['balance', 'holds', 'held', 'shared', 'free'].map((name) => `${prefix}${name}:{${accountId}}`);

  return {
    reserve: async (request) => {
      const { accountId, holdId, priceMicros, capMicros, plan, trialPaused, shared, now } = request;
      const until = now + request.holdForMs;
      const [answer, chosen, price] = await scripts.reserve(keys(accountId), [
        ...[now, holdId ?? '', priceMicros, until, minimumBalanceMicros, capMicros ?? -1],
        ...[plan, trialPaused ? 1 : 0, shared ? 1 : 0],
        ...[shared?.trialAllowance ?? 0, shared?.hourly ?? 0, holdsKeepMs],
      ]);
      if (answer === 'miss') return { kind: 'miss' };
      if (answer !== 'ok') return { kind: 'refused', code: answer as ErrorCode };
      return { kind: 'ok', plan: chosen as Plan, priceMicros: Number(price) };
    },
    keep: async (accountId, hold, until) => {
      await scripts.keep(keys(accountId), [memberOf(hold), until, holdsKeepMs]);
    },
    look: async (accountId, now) => {
      const [micros, free, total, sharedHour] = await scripts.look(keys(accountId), [now]);
      return {
        ...{ micros: Number(micros), free: Number(free), sharedHour: Number(sharedHour) },
        sharedTotal: total === '' ? undefined : Number(total),
      };
    },
    release: async (accountId, hold, shared) => {
      await scripts.release(keys(accountId), [memberOf(hold), shared ? 1 : 0]);
    },
    note: async (accountId, balance, { holds = [], sharedTotal } = {}) => {
      await scripts.note(keys(accountId), [
        ...[balance.seq, balance.micros, balance.trialGranted, balance.trialUsed],
        ...[balance.deposited ? 1 : 0, balance.spentHour, balance.spentMicros],
        ...[sharedTotal ?? '', balanceKeepMs, sharedKeepMs],
        ...holds.map(memberOf),
      ]);
    },
  };
};

// Counting the evidence off the events of messages: the worker's side of the guard, where accounts are held.
import { isOutage } from '../infra/outages.ts';
import type { EventWire } from '../jobs.ts';
import { type Clock, minute } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import type { Log } from '../kernel/log.ts';
import { reachedAs } from '../kernel/phone.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { createCountryWatch } from './countries.ts';
import { createHolder } from './hold.ts';
import {
  type Allowed,
  type Evidence,
  evidenceOf,
  type GuardMode,
  isAllowed,
  prefixOf,
} from './rules.ts';
import type { PumpingStore } from './store.ts';

export type CounterDeps = {
  store: PumpingStore;
  recipients: RecipientKeys;
  /** Operators may change it at any time. */
  mode(): GuardMode;
  allowed: Allowed;
  clock: Clock;
  log: Log;
};

export type PumpingCounter = {
  /**
   * Counts what the events say, each message once however often its events come, and holds who pumps. Resolves when
   * all of it is in Redis; throws RedisUnavailable.
   */
  count(events: readonly EventWire[]): Promise<void>;
};

const maxEvents = 200;
const gatherMs = 20;
const goodForMs = minute;
const rememberedMost = 10_000;

/** Accounts that were found good a moment ago: their open codes are not looked at. */
const createGoodAccounts = (clock: Clock) => {
  const until = new Map<string, number>();
  return {
    has: (accountId: string): boolean => (until.get(accountId) ?? 0) > clock.now(),
    note: (accountId: string, good: boolean): void => {
      if (until.size >= rememberedMost) until.clear();
      if (good) until.set(accountId, clock.now() + goodForMs);
      else until.delete(accountId);
    },
  };
};

/** The counter of one worker process. Nobody waits for it: it gathers, one round trip per account and batch. */
export const createPumpingCounter = (deps: CounterDeps): PumpingCounter => {
  const { store, recipients, mode, allowed, clock } = deps;
  const countries = createCountryWatch(deps);
  const holder = createHolder(deps);
  const good = createGoodAccounts(clock);

  const countAccount = async (accountId: string, some: readonly Evidence[]) => {
    const keyed = some.map((evidence) => {
      const prefixKey = recipients.ofPrefix(accountId, prefixOf(reachedAs(evidence.phone)));
      return { ...evidence, prefixKey };
    });
    const recorded = await store.record(accountId, keyed, clock.now());
    good.note(accountId, recorded.good);
    await holder.judge(accountId, keyed, recorded);
    return recorded.counted;
  };

  const grouped = createGrouper<Evidence[], undefined>({
    maxSize: maxEvents,
    maxWaitMs: gatherMs,
    blamesOne: (error) => !isOutage(error),
    run: async (groups) => {
      const byAccount = [...Map.groupBy(groups.flat(), ({ accountId }) => accountId)];
      const counted = await Promise.all(
        byAccount.map(([accountId, some]) => countAccount(accountId, some)),
      );
      await countries.count(counted.flat());
      return [];
    },
  });

  /** What may change a decision: receipts only for delivers, open codes only of accounts that are not known good. */
  const matters = ({ accountId, phone, origin, sign }: Evidence): boolean => {
    if (origin === 'send' && sign === 'delivered') return false;
    if (origin === 'send' && sign === 'sent' && good.has(accountId)) return false;
    return !isAllowed(allowed, accountId, phone);
  };

  return {
    count: async (events) => {
      if (mode() === 'off') return;
      const now = clock.now();
      const evidence = events
        .map((event) => evidenceOf(event, now))
        .filter((one) => one !== undefined)
        .filter(matters);
      if (evidence.length > 0) await grouped.add(evidence);
    },
  };
};

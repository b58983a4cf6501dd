// Counting the evidence off the events of messages: the worker's side of the guard, where prefixes are held.
import { isOutage } from '../infra/outages.ts';
import type { EventWire } from '../jobs.ts';
import { type Clock, second } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import type { Log } from '../kernel/log.ts';
import type { RecipientKeys } from '../kernel/recipients.ts';
import { createCountryWatch } from './countries.ts';
import {
  type Allowed,
  type GuardMode,
  type Hold,
  isAllowed,
  isPumped,
  judgedFrom,
  maskPrefix,
  nextHold,
  prefixOf,
  type Settled,
  settledBy,
} from './rules.ts';
import type { PrefixTally, PumpingStore } from './store.ts';

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
   * Counts what the events say, each message once however often its events come, and holds the prefixes that are
   * pumped. Resolves when all of it is in Redis; throws RedisUnavailable.
   */
  count(events: readonly EventWire[]): Promise<void>;
};

type Keyed = Settled & { prefixKey: string };

const hashShown = 12;

const logHold = ({ mode, log }: CounterDeps, sample: Keyed, hold: Hold): void => {
  log.warn(
    {
      account_id: sample.accountId,
      country: sample.country,
      prefix: maskPrefix(prefixOf(sample.phone)),
      prefix_hash: sample.prefixKey.slice(0, hashShown),
      ...{ settled: hold.settled, verified: hold.verified, level: hold.level },
      hold_seconds: (hold.until - hold.since) / second,
    },
    mode() === 'enforce' ? 'prefix held' : 'prefix would be held',
  );
};

/** Holds a prefix that is pumped, and shows a hold that is on: the run that began it may not have lived to. */
const judge = async (deps: CounterDeps, sample: Keyed, tally: PrefixTally): Promise<void> => {
  const now = deps.clock.now();
  const { accountId, prefixKey, phone, country } = sample;
  const ref = { accountId, prefixKey };
  let hold = tally.hold;
  if (hold === undefined || hold.until <= now) {
    if (!isPumped(tally, judgedFrom.prefix)) return;
    const next = nextHold(hold, { settled: tally.settled, verified: tally.verified }, now);
    if (!(await deps.store.hold(ref, hold, next))) return;
    logHold(deps, sample, next);
    hold = next;
  }
  const prefix = maskPrefix(prefixOf(phone));
  await deps.store.publish({ ...ref, prefix, country, ...hold }, now);
};

const countOfAccount = async (
  deps: CounterDeps,
  accountId: string,
  messages: readonly Settled[],
): Promise<Settled[]> => {
  const keyed = messages.map((message) => {
    const prefixKey = deps.recipients.ofPrefix(accountId, prefixOf(message.phone));
    return { ...message, prefixKey };
  });
  const { prefixes, counted } = await deps.store.record(accountId, keyed, deps.clock.now());
  const samples = new Map(keyed.map((message) => [message.prefixKey, message]));
  await Promise.all(
    [...samples].map(([prefixKey, sample]) => {
      const tally = prefixes.get(prefixKey);
      return tally && judge(deps, sample, tally);
    }),
  );
  return counted;
};

const maxEvents = 200;
const gatherMs = 20;

/** The counter of one worker process. Nobody waits for it: it gathers, one round trip per account and batch. */
export const createPumpingCounter = (deps: CounterDeps): PumpingCounter => {
  const { mode, allowed, clock } = deps;
  const countries = createCountryWatch(deps);

  const countAll = async (messages: readonly Settled[]): Promise<void> => {
    const byAccount = [...Map.groupBy(messages, ({ accountId }) => accountId)];
    const counted = await Promise.all(
      byAccount.map(([accountId, some]) => countOfAccount(deps, accountId, some)),
    );
    await countries.count(counted.flat());
  };

  const grouped = createGrouper<Settled[], undefined>({
    maxSize: maxEvents,
    maxWaitMs: gatherMs,
    blamesOne: (error) => !isOutage(error),
    run: async (groups) => {
      await countAll(groups.flat());
      return [];
    },
  });

  return {
    count: async (events) => {
      if (mode() === 'off') return;
      const now = clock.now();
      const messages = events
        .map((event) => settledBy(event, now))
        .filter((settled) => settled !== undefined)
        .filter(({ accountId, phone }) => !isAllowed(allowed, accountId, phone));
      if (messages.length > 0) await grouped.add(messages);
    },
  };
};

// The held prefixes as a process remembers them: asked for once a second, so that a send looks into a Map alone.
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { HeldPrefix, PumpingStore } from './store.ts';

const pollMs = 1_000;

export type HeldPrefixes = {
  /** Held prefixes of an account by prefix key; undefined when it has none. Some may be over. */
  of(accountId: string): ReadonlyMap<string, HeldPrefix> | undefined;
  start(): Promise<void>;
  stop(): void;
};

/** With Redis away the last known set stays: a hold has an end, and what it holds back is not wanted. */
export const createHeldPrefixes = (deps: {
  store: Pick<PumpingStore, 'heldSince'>;
  log: Log;
  everyMs?: number;
}): HeldPrefixes => {
  const { store, log, everyMs = pollMs } = deps;
  let epoch: string | undefined;
  let byAccount = new Map<string, Map<string, HeldPrefix>>();
  let timer: NodeJS.Timeout | undefined;
  let asking = false;

  const poll = async (): Promise<void> => {
    // A slow answer must not overtake a newer one.
    if (asking) return;
    asking = true;
    try {
      const news = await store.heldSince(epoch);
      if (news === undefined) return;
      epoch = news.epoch;
      const accounts = Map.groupBy(news.holds, ({ accountId }) => accountId);
      byAccount = new Map(
        [...accounts].map(([accountId, holds]) => [
          accountId,
          new Map(holds.map((hold) => [hold.prefixKey, hold])),
        ]),
      );
    } catch (error) {
      log.debug({ reason: describeError(error) }, 'held prefixes not read');
    } finally {
      asking = false;
    }
  };

  return {
    of: (accountId) => byAccount.get(accountId),
    start: async () => {
      await poll();
      timer = setInterval(() => void poll(), everyMs);
    },
    stop: () => clearInterval(timer),
  };
};

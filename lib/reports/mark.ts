// Marking: every event about a message says that its hour is to be counted again; most say what is known already.
import type { EventWire } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { hour } from '../kernel/clock.ts';
import { idTime } from '../kernel/ids.ts';
import type { Mark } from './marks.ts';
import type { RollupStore } from './rollup-store.ts';
import { slotOf } from './rules.ts';

export type Marker = {
  /** Resolves when what the events are about is marked; to be called after their facts were committed. */
  mark(events: readonly EventWire[]): Promise<void>;
};

/**
 * A marker of one process. It remembers what it marked in the current slot of time: such a mark is taken only after
 * the slot is over, so it covers whatever else happens in it, and a busy hour costs one row per slot.
 */
export const createMarker = ({
  rollupStore,
  clock,
}: {
  rollupStore: Pick<RollupStore, 'mark'>;
  clock: Clock;
}): Marker => {
  let slot = -1;
  let marked = new Set<string>();

  return {
    mark: async (events) => {
      const now = slotOf(clock.now());
      if (now !== slot) {
        slot = now;
        marked = new Set();
      }
      const known = marked;
      const fresh = new Map<string, Mark>();
      for (const { message } of events) {
        if (message === null) continue;
        const at = Math.floor(idTime(message.id) / hour);
        const key = `${message.account_id}:${at}`;
        if (known.has(key)) continue;
        fresh.set(key, { slot: now, accountId: message.account_id, hour: at });
      }
      if (fresh.size === 0) return;
      await rollupStore.mark([...fresh.values()]);
      // Only what is in the table may be relied on.
      for (const key of fresh.keys()) known.add(key);
    },
  };
};

// Counting again what is marked: on the clock, in small batches, and never more than a small share of the time.
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { closableUntil } from './months.ts';
import type { RollupStore } from './rollup-store.ts';
import { dueSlot } from './rules.ts';

export type RefreshDeps = { rollupStore: RollupStore; clock: Clock; log: Log };

const batch = 200;

/** It rests this many times as long as it worked: counting takes at most a twentieth of the database's time. */
const restFactor = 19;

/** Counts everything whose slot is over, batch by batch. Answers how many marks were done. */
export const refreshAll = async ({
  rollupStore,
  clock,
}: Pick<RefreshDeps, 'rollupStore' | 'clock'>): Promise<number> => {
  let done = 0;
  for (;;) {
    const throughSlot = dueSlot(clock.now());
    const some = await rollupStore.refresh({ throughSlot, limit: batch });
    done += some ?? 0;
    if ((some ?? 0) < batch) return done;
  }
};

/** The chore of the analytics worker: one batch a second, less often where counting is slow. */
export const createRefresher = (deps: RefreshDeps): Chore => {
  const { rollupStore, clock, log } = deps;
  let restUntil = 0;
  let closedUntil = 0;
  const closeMonths = async (): Promise<void> => {
    const until = closableUntil(clock.now());
    if (until === closedUntil) return;
    if (!(await rollupStore.closeMonth(until))) closedUntil = until;
  };
  return repeat(
    async () => {
      const begun = performance.now();
      if (begun < restUntil) return;
      const throughSlot = dueSlot(clock.now());
      await rollupStore.refresh({ throughSlot, limit: batch });
      await closeMonths();
      const took = performance.now() - begun;
      restUntil = begun + took * restFactor;
      if (took > 10 * second) log.warn({ took_ms: Math.round(took) }, 'counting is slow');
    },
    second,
    log,
  );
};

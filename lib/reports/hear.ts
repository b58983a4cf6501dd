// Up to when the analytics worker has heard of everything: noted whenever nothing waits in its queues.
import type { Broker } from '../infra/queue/broker.ts';
import { againQueue, waitQueue } from '../infra/queue/topology.ts';
import { analyticsRollup } from '../jobs.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, second } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { RollupStore } from './rollup-store.ts';

export type HearingDeps = {
  rollupStore: Pick<RollupStore, 'hear'>;
  broker: Pick<Broker, 'look' | 'ready'>;
  clock: Clock;
  log: Log;
};

const { name, retrySeconds } = analyticsRollup;
const queues = [name, againQueue(name), ...retrySeconds.map((wait) => waitQueue(name, wait))];

/** True when nothing waits to be heard of, now or after a failure. */
const nothingWaits = ({ broker }: HearingDeps): Promise<boolean> =>
  broker.look(async (channel) => {
    for (const queue of queues) {
      if ((await channel.checkQueue(queue)).messageCount > 0) return false;
    }
    return true;
  });

/**
 * The chore of the analytics worker: once a second. Without it, or while its queues are not empty, readers see that
 * figures are as old as they are.
 */
export const createHearing = (deps: HearingDeps): Chore =>
  repeat(
    async () => {
      if (!deps.broker.ready()) return;
      const at = deps.clock.now();
      if (await nothingWaits(deps)) await deps.rollupStore.hear(at);
    },
    second,
    deps.log,
  );

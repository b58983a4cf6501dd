// Retention: deliveries, attempts and replays are kept 30 days and then dropped, a batch at a time.
import { type Chore, repeat } from '../kernel/chore.ts';
import type { Clock } from '../kernel/clock.ts';
import { hour } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { WebhookStore } from './store.ts';

type Deps = { webhooks: Pick<WebhookStore, 'purge'>; clock: Clock; log: Log };

const batch = 1_000;

/** Drops all that is too old, in statements so small that nobody waits for one. */
export const purgeOld = async ({ webhooks, clock }: Deps): Promise<void> => {
  while (await webhooks.purge(clock.now(), batch));
};

/** The chore of it, once an hour. */
export const createRetention = (deps: Deps): Chore => repeat(() => purgeOld(deps), hour, deps.log);

// Putting away what cannot go out: it waits in MySQL, is held behind an endpoint that is given up, or has none.
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Delivery } from './delivery.ts';
import type { Endpoint } from './endpoint-store.ts';
import type { Lanes } from './lanes.ts';
import type { WebhookStore } from './store.ts';
import type { Recorded } from './work-store.ts';

export type Away = Record<'parked' | 'held' | 'failed', readonly Delivery[]>;

export type PutAway = {
  now(away: Away, endpoints: ReadonlyMap<string, Endpoint>): Promise<void>;
  /** Parks what was taken out of a lane, without anybody waiting for it. */
  later(deliveries: readonly Delivery[]): void;
  drain(): Promise<void>;
};

const withoutEndpoint = (delivery: Delivery, at: number): Recorded => ({
  ...{ delivery, counted: true },
  attempt: {
    ...{ number: delivery.attempts + 1, at, status: null },
    ...{ reason: 'no_endpoint', durationMs: 0 },
  },
  to: { status: 'failed', nextAttemptAt: null },
});

export const createPutAway = (deps: {
  webhooks: WebhookStore;
  lanes: Lanes;
  clock: Clock;
  log: Log;
}): PutAway => {
  const { webhooks, lanes, clock, log } = deps;
  const open = new Set<Promise<void>>();

  const park = async (deliveries: readonly Delivery[]): Promise<void> => {
    if (deliveries.length === 0) return;
    await webhooks.park(deliveries, clock.now());
    for (const { accountId } of deliveries) {
      const lane = lanes.at(accountId);
      if (lane) lane.parked = true;
    }
  };

  return {
    now: async ({ parked, held, failed }, endpoints) => {
      const at = clock.now();
      await park(parked);
      for (const { accountId } of parked) {
        // Its lane may have been closed while it was written.
        const endpoint = endpoints.get(accountId);
        if (endpoint) lanes.of(endpoint).parked = true;
      }
      await webhooks.hold(held, at);
      if (failed.length > 0) {
        await webhooks.record(
          failed.map((delivery) => withoutEndpoint(delivery, at)),
          at,
        );
      }
    },
    later: (deliveries) => {
      const parking = park(deliveries)
        // Their leases end by themselves.
        .catch((error: unknown) =>
          log.warn({ reason: describeError(error) }, 'webhooks not put to wait'),
        )
        .finally(() => open.delete(parking));
      open.add(parking);
    },
    drain: async () => {
      await Promise.all(open);
    },
  };
};

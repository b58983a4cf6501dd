// From events to deliveries: what happened becomes rows for those who have an address, and goes out at once if it may.
import type { Outcome } from '../infra/queue/message.ts';
import type { EventWire } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { newId } from '../kernel/ids.ts';
import type { Deliverer } from './deliver.ts';
import type { Delivery } from './delivery.ts';
import type { Endpoints } from './endpoints.ts';
import { isEnd, render } from './render.ts';
import type { WebhookStore } from './store.ts';
import type { NewDelivery } from './work-store.ts';

export type Dispatcher = {
  /** Handles the job webhook.dispatch; the same event twice is one delivery. */
  handle(job: { events: EventWire[] }): Promise<Outcome>;
};

/** Jobs in a group, and events that share their statements; a group of full jobs takes several. */
const maxSize = 100;
const maxWaitMs = 2;
const eventsAtOnce = 100;

const toDelivery = (row: NewDelivery, now: number): Delivery => ({
  id: row.id,
  accountId: row.accountId,
  eventId: row.eventId,
  type: row.type,
  mode: row.mode,
  body: row.body,
  status: 'pending',
  attempts: 0,
  tries: 0,
  createdAt: now,
  manual: false,
  releasedAt: null,
  deliveredAt: null,
  nextAttemptAt: null,
  runningUntil: row.place.kind === 'leased' ? row.place.until : null,
});

/**
 * Accounts whose owner asked for a test. Its answer is meant for the address that is set now; the news that another one
 * was set takes a moment from process to process, and other events may still go to the address before it meanwhile.
 */
const testedOf = (events: readonly EventWire[]): ReadonlySet<string> =>
  new Set(events.flatMap(({ type, account_id }) => (type === 'webhook.test' ? [account_id] : [])));

/**
 * Jobs that come within a moment share their statements.
 */
export const createDispatcher = (deps: {
  webhooks: Pick<WebhookStore, 'add' | 'legs'>;
  endpoints: Endpoints;
  deliverer: Pick<Deliverer, 'place' | 'offer' | 'ready'>;
  clock: Clock;
}): Dispatcher => {
  const { webhooks, deliverer, clock } = deps;

  const dispatch = async (events: EventWire[]): Promise<void> => {
    const accountIds = new Set(events.map((event) => event.account_id));
    const endpoints = await deps.endpoints.of([...accountIds], testedOf(events));
    const legs = await webhooks.legs(
      events.flatMap(({ type, account_id, message }) =>
        message && isEnd({ type }) && endpoints.has(account_id) ? [message.id] : [],
      ),
    );
    const rows = events.flatMap((event): NewDelivery[] => {
      const endpoint = endpoints.get(event.account_id);
      if (!endpoint) return [];
      return render(event, legs.get(event.message?.id ?? '')).map((rendered) => ({
        ...rendered,
        id: newId(),
        mode: event.mode,
        accountId: endpoint.accountId,
        place: deliverer.place(endpoint, rendered.type),
      }));
    });
    const now = clock.now();
    const added = await webhooks.add(rows, now);
    // The others are deliveries already: whoever has them sees to them.
    const fresh = rows.filter(({ id, place }) => added.has(id) && place.kind !== 'due');
    await deliverer.offer(
      fresh.map((row) => toDelivery(row, now)),
      endpoints,
    );
  };

  const group = createGrouper<EventWire[], undefined>({
    ...{ maxSize, maxWaitMs },
    run: async (jobs) => {
      const events = jobs.flat();
      for (let from = 0; from < events.length; from += eventsAtOnce) {
        await deliverer.ready();
        await dispatch(events.slice(from, from + eventsAtOnce));
      }
      return [];
    },
    // One bad event must not send all of its neighbours up the ladder.
    blamesOne: () => true,
  });

  return {
    handle: async ({ events }) => {
      await group.add(events);
      return { kind: 'done' };
    },
  };
};

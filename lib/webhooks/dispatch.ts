// From events to deliveries: what happened becomes rows for those who have an address.
import type { Outcome } from '../infra/queue/message.ts';
import type { EventWire } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import type { Revocations } from '../keys/revocations.ts';
import { render } from './render.ts';
import type { Endpoint, WebhookStore } from './store.ts';

const rememberMs = minute;
const rememberedMax = 10_000;

export type Endpoints = { of(accountId: string): Promise<Endpoint | undefined> };

/** Endpoints by account, remembered for a minute as long as nothing was announced anywhere. */
export const createEndpoints = (deps: {
  webhooks: Pick<WebhookStore, 'endpoint'>;
  revocations: Pick<Revocations, 'epoch'>;
  clock: Clock;
}): Endpoints => {
  const { webhooks, revocations, clock } = deps;
  type Known = { endpoint: Endpoint | undefined; epoch: string; until: number };
  const remembered = new Map<string, Known>();
  return {
    of: async (accountId) => {
      const epoch = revocations.epoch();
      const now = clock.now();
      const known = remembered.get(accountId);
      if (known && known.epoch === epoch && known.until > now) return known.endpoint;
      const endpoint = await webhooks.endpoint(accountId);
      if (epoch !== undefined) {
        if (remembered.size >= rememberedMax) remembered.clear();
        remembered.set(accountId, { endpoint, epoch, until: now + rememberMs });
      }
      return endpoint;
    },
  };
};

/** Handles the job webhook.dispatch; the same event twice is one delivery. `onAdded` hears that something is due. */
export const handleDispatch = async (
  deps: { webhooks: WebhookStore; endpoints: Endpoints; clock: Clock },
  { events }: { events: EventWire[] },
  onAdded: () => void,
): Promise<Outcome> => {
  const rows = await Promise.all(
    events.map(async (event) => {
      const endpoint = await deps.endpoints.of(event.account_id);
      if (!endpoint) return [];
      const about = { accountId: event.account_id, held: endpoint.disabled };
      return render(event).map((rendered) => ({ ...rendered, ...about }));
    }),
  );
  const all = rows.flat();
  await deps.webhooks.add(all, deps.clock.now());
  if (all.length > 0) onAdded();
  return { kind: 'done' };
};

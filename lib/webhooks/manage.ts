// Deliveries in their owner's hands: the list, one with its attempts, once more, and a test.
import type { Clock } from '../kernel/clock.ts';
import { cursorOf } from '../kernel/cursor.ts';
import { fail, invalid } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Announcer } from '../messages/announce.ts';
import { accountEvent } from '../messages/events.ts';
import type { Mode } from '../messages/rules.ts';
import type { Delivery } from './delivery.ts';
import type { DisabledReason, EndpointState } from './endpoint-store.ts';
import { publicEventId } from './render.ts';
import type { Replay } from './replay-store.ts';
import { givenUpAt } from './rules.ts';
import type { DeliveryFilter, WebhookStore } from './store.ts';

type Deps = { webhooks: WebhookStore; announcer: Announcer; clock: Clock };

const isoOrNull = (ms: number | null): string | null =>
  ms === null ? null : new Date(ms).toISOString();

const view = (delivery: Delivery) => ({
  id: delivery.id,
  event_id: publicEventId(delivery.eventId),
  type: delivery.type,
  mode: delivery.mode,
  status: delivery.status,
  // While an attempt is under way, nobody knows when the next one is.
  next_attempt_at: isoOrNull(delivery.runningUntil === null ? delivery.nextAttemptAt : null),
  created_at: new Date(delivery.createdAt).toISOString(),
});

/** GET /v1/clients/webhooks/deliveries: newest first. */
export const listDeliveries = async (
  { webhooks }: Pick<Deps, 'webhooks'>,
  accountId: string,
  query: Partial<DeliveryFilter> & { limit: number },
) => {
  const none = { before: undefined, type: undefined, status: undefined, mode: undefined };
  const filter = { ...none, from: undefined, to: undefined, ...query };
  const found = await webhooks.list(accountId, { ...filter, limit: filter.limit + 1 });
  const items = found.slice(0, filter.limit);
  const last = items.at(-1);
  return {
    items: items.map((delivery) => ({ ...view(delivery), attempts: delivery.attempts })),
    next_before: found.length > filter.limit && last ? cursorOf(last.id) : null,
  };
};

/** A delivery by its id; `mode` undefined: the caller may read both. */
type Wanted = { id: string; mode: Mode | undefined };

/** @throws NOT_FOUND, also for a delivery of the other mode */
const requireDelivery = async (
  webhooks: WebhookStore,
  accountId: string,
  { id, mode }: Wanted,
): Promise<Delivery> => {
  const delivery = await webhooks.find(accountId, id);
  if (!delivery || delivery.mode !== (mode ?? delivery.mode)) throw fail('NOT_FOUND');
  return delivery;
};

/** GET /v1/clients/webhooks/deliveries/{id}: with every attempt and the body. @throws NOT_FOUND */
export const findDelivery = async (
  { webhooks }: Pick<Deps, 'webhooks'>,
  accountId: string,
  wanted: Wanted,
) => {
  const delivery = await requireDelivery(webhooks, accountId, wanted);
  const attempts = await webhooks.attempts(delivery.id);
  return {
    ...view(delivery),
    body: delivery.body,
    attempts: attempts.map(({ number, at, status, reason, durationMs }) => ({
      ...{ number, at: new Date(at).toISOString(), status, reason, duration_ms: durationMs },
    })),
  };
};

/**
 * Why what is on its way to an account's endpoint will be held for now; null when it goes out.
 * @throws VALIDATION_ERROR when no address is set
 */
const heldBecause = async (
  webhooks: WebhookStore,
  accountId: string,
): Promise<DisabledReason | null> => {
  const endpoint = await webhooks.endpoint(accountId);
  if (!endpoint) {
    throw invalid({ field: 'webhook_url', issue: 'is not set; set it in the settings first' });
  }
  if (!endpoint.disabled) return null;
  return (await webhooks.endpointState(accountId))?.disabledReason ?? null;
};

/** What becomes of something that was asked for: nothing goes to an endpoint that is given up. */
const outlook = (reason: DisabledReason | null) => ({
  status: reason === null ? ('pending' as const) : ('held' as const),
  disabled_reason: reason,
});

/**
 * POST …/{id}/redeliver: the same event, with the same id, once more; held when the endpoint is given up.
 * @throws NOT_FOUND, VALIDATION_ERROR when no address is set
 */
export const redeliver = async (
  { webhooks, clock }: Pick<Deps, 'webhooks' | 'clock'>,
  accountId: string,
  wanted: Wanted,
) => {
  const { id } = await requireDelivery(webhooks, accountId, wanted);
  const reason = await heldBecause(webhooks, accountId);
  await webhooks.redeliver(accountId, id, clock.now());
  return { id, ...outlook(reason) };
};

/**
 * POST /v1/clients/webhooks/test: an event of its own type, on the road of all others; held when the endpoint is
 * given up.
 * @throws VALIDATION_ERROR when no address is set
 */
export const sendTest = async (
  { webhooks, announcer, clock }: Deps,
  { accountId, requestId }: { accountId: string; requestId: string },
) => {
  const reason = await heldBecause(webhooks, accountId);
  const about = { accountId, mode: 'live' as const, at: clock.now(), requestId };
  const data = { message: 'This is a test.' };
  const event = accountEvent('webhook.test', { ...about, subject: newId(), data });
  await announcer.announce(event, { urgent: true });
  return { event_id: publicEventId(event.id), ...outlook(reason) };
};

const replayView = (replay: Replay | undefined) =>
  replay
    ? {
        status: replay.finishedAt === null ? ('running' as const) : ('finished' as const),
        ...{ total: replay.total, released: replay.released },
        started_at: new Date(replay.createdAt).toISOString(),
        finished_at: isoOrNull(replay.finishedAt),
      }
    : null;

const statusOf = (state: EndpointState, now: number) => {
  if (state.disabledAt !== null) return 'disabled' as const;
  if ((state.pausedUntil ?? 0) > now) return 'paused' as const;
  return state.failingSince === null ? ('active' as const) : ('failing' as const);
};

/** How an account's endpoint fares, with the last replay of what was held; null when it has none. */
export const endpointView = async (
  { webhooks, clock }: Pick<Deps, 'webhooks' | 'clock'>,
  { id, webhookUrl }: { id: string; webhookUrl: string | null },
) => {
  if (webhookUrl === null) return null;
  const [state, replay] = await Promise.all([webhooks.endpointState(id), webhooks.lastReplay(id)]);
  if (!state) return null;
  const now = clock.now();
  const status = statusOf(state, now);
  return {
    status,
    disabled_reason: state.disabledReason,
    failing_since: isoOrNull(state.failingSince),
    failures: state.failures,
    disables_at: isoOrNull(status === 'disabled' ? null : givenUpAt(state)),
    disabled_at: isoOrNull(state.disabledAt),
    paused_until: status === 'paused' ? isoOrNull(state.pausedUntil) : null,
    replay: replayView(replay),
  };
};

export type EndpointView = NonNullable<Awaited<ReturnType<typeof endpointView>>>;

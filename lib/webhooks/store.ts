// Deliveries in MySQL as their owner looks into them; the work on them is in work-store.ts.
import type { Database } from '../infra/mysql.ts';
import { belowOf, kindsOf, rowsOfKinds } from '../infra/newest.ts';
import { idAt, idBytes, idText } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import { eventCatalogue } from './catalogue.ts';
import {
  type Delivery,
  type DeliveryStatus,
  numberOrNull,
  type Row,
  toDelivery,
} from './delivery.ts';
import { createEndpointStore } from './endpoint-store.ts';
import { createProbeStore } from './probe-store.ts';
import type { Leg } from './render.ts';
import { createReplayStore } from './replay-store.ts';
import { createWorkStore } from './work-store.ts';

export type AttemptRow = {
  number: number;
  at: number;
  status: number | null;
  reason: string | null;
  durationMs: number;
};

export type DeliveryFilter = {
  before: string | undefined;
  type: string | undefined;
  status: DeliveryStatus | undefined;
  mode: Mode | undefined;
  from: number | undefined;
  to: number | undefined;
  limit: number;
};

const channelOf = ({ data }: Row): string => {
  const facts = typeof data === 'string' ? JSON.parse(data) : data;
  return String((facts as { channel?: unknown }).channel);
};

const legsFrom = (steps: readonly Row[]): Leg[] => {
  const arrived = steps.filter(({ type }) => type === 'otp.delivered');
  return steps
    .filter(({ type }) => type === 'otp.sent')
    .map((step) => ({
      channel: channelOf(step),
      acceptedAt: numberOrNull(step.at),
      deliveredAt: numberOrNull(arrived.find((other) => channelOf(other) === channelOf(step))?.at),
    }));
};

/** To its owner, what waits for the endpoint's turn is pending. */
const storedStates = (status: DeliveryStatus | undefined): string[] => {
  if (status === undefined) return ['pending', 'waiting', 'delivered', 'failed', 'held'];
  return status === 'pending' ? ['pending', 'waiting'] : [status];
};

/**
 * By state alone all deliveries stand in one short list of kinds. One mode of them is found by type as well: of every
 * type there is where the filter names none, so that no index more is written with each delivery.
 */
const indexFor = ({ type, status, mode }: DeliveryFilter) => {
  const states = storedStates(status);
  if (type === undefined && mode === undefined) {
    return {
      index: 'webhook_deliveries_by_status',
      columns: ['status'],
      kinds: kindsOf([states]),
    };
  }
  const modes = mode === undefined ? ['live', 'test'] : [mode];
  const types = type === undefined ? Object.keys(eventCatalogue) : [type];
  return {
    index: 'webhook_deliveries_by_kind',
    columns: ['mode', 'type', 'status'],
    kinds: kindsOf([modes, types, states]),
  };
};

const createOwnersStore = (db: Database) => ({
  /** Newest first; at most `limit`, older than `before`. */
  list: async (accountId: string, filter: DeliveryFilter): Promise<Delivery[]> => {
    const { from, limit } = filter;
    const below = belowOf(filter);
    const rows = await rowsOfKinds(db, limit, {
      ...{ table: 'webhook_deliveries', accountId: idBytes(accountId), ...indexFor(filter) },
      from: from === undefined ? undefined : idBytes(idAt(from)),
      below: below === undefined ? undefined : idBytes(below),
    });
    return rows.map(toDelivery);
  },

  find: async (accountId: string, id: string): Promise<Delivery | undefined> => {
    const row = await db<Row>('webhook_deliveries')
      .where({ id: idBytes(id), account_id: idBytes(accountId) })
      .first();
    return row === undefined ? undefined : toDelivery(row);
  },

  attempts: async (deliveryId: string): Promise<AttemptRow[]> => {
    const rows = await db<Row>('webhook_attempts')
      .where({ delivery_id: idBytes(deliveryId) })
      .orderBy('number');
    return rows.map((row) => ({
      number: Number(row.number),
      at: Number(row.at),
      status: numberOrNull(row.status),
      reason: row.reason === null ? null : String(row.reason),
      durationMs: Number(row.duration_ms),
    }));
  },

  /** The channels that accepted messages, as far as their history is written, in order. */
  legs: async (messageIds: readonly string[]): Promise<Map<string, Leg[]>> => {
    if (messageIds.length === 0) return new Map();
    const rows: Row[] = await db('message_events')
      .whereIn('message_id', messageIds.map(idBytes))
      .whereIn('type', ['otp.sent', 'otp.delivered'])
      .orderBy('at')
      .select('message_id', 'type', 'at', 'data');
    const byMessage = Map.groupBy(rows, (row) => idText(row.message_id as Buffer));
    return new Map([...byMessage].map(([id, steps]) => [id, legsFrom(steps)]));
  },

  /**
   * Lets a delivery go out once more, now, or as soon as the attempt that is under way has ended; false when the
   * account has no such delivery.
   */
  redeliver: async (accountId: string, id: string, now: number): Promise<boolean> => {
    const changed = await db('webhook_deliveries')
      .where({ id: idBytes(id), account_id: idBytes(accountId) })
      .update({
        status: 'pending',
        manual: 1,
        next_attempt_at: db.raw('GREATEST(?, COALESCE(running_until, 0))', [now]),
      });
    return changed === 1;
  },
});

export type WebhookStore = ReturnType<typeof createWebhookStore>;

export const createWebhookStore = (db: Database) => ({
  ...createOwnersStore(db),
  ...createWorkStore(db),
  ...createEndpointStore(db),
  ...createReplayStore(db),
  ...createProbeStore(db),
});

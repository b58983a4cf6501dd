// Deliveries in MySQL: each event once per account, what is due, and every attempt.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idAt, idBytes, idText, newId } from '../kernel/ids.ts';
import type { Rendered } from './render.ts';

type Row = Record<string, unknown>;

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'held';

export type Delivery = {
  id: string;
  accountId: string;
  eventId: string;
  type: string;
  body: string;
  status: DeliveryStatus;
  attempts: number;
  createdAt: number;
  nextAttemptAt: number | null;
};

export type Endpoint = { url: string; disabled: boolean };

export type AttemptRow = {
  number: number;
  at: number;
  status: number | null;
  reason: string | null;
  durationMs: number;
};

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const toDelivery = (row: Row): Delivery => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  eventId: (row.event_id as Buffer).toString('hex'),
  type: String(row.type),
  body: String(row.body),
  status: row.status as DeliveryStatus,
  attempts: Number(row.attempts),
  createdAt: Number(row.created_at),
  nextAttemptAt: numberOrNull(row.next_attempt_at),
});

export type DeliveryFilter = {
  before: string | undefined;
  type: string | undefined;
  status: DeliveryStatus | undefined;
  from: number | undefined;
  to: number | undefined;
  limit: number;
};

const work = (db: Database) => ({
  /** Adds deliveries; an event that an account has already is passed over. */
  add: async (
    rows: readonly (Rendered & { accountId: string; held: boolean })[],
    now: number,
  ): Promise<void> => {
    if (rows.length === 0) return;
    const values = rows.map(({ accountId, eventId, type, body, held }) => ({
      ...{ id: idBytes(newId()), account_id: idBytes(accountId) },
      ...{ event_id: Buffer.from(eventId, 'hex'), type, body, created_at: now },
      ...{ status: held ? 'held' : 'pending', next_attempt_at: held ? null : now },
    }));
    await withLockRetry(() => db('webhook_deliveries').insert(values).onConflict().ignore());
  },

  /**
   * At most `limit` deliveries that are due, leased for `leaseMs`: nobody else takes them before. Accounts in `busy`
   * are passed over, so that one with a slow endpoint does not stand before all others.
   */
  takeDue: (given: {
    now: number;
    leaseMs: number;
    limit: number;
    busy: readonly string[];
  }): Promise<Delivery[]> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const query = trx<Row>('webhook_deliveries')
          .where('next_attempt_at', '<=', given.now)
          .orderBy('next_attempt_at')
          .limit(given.limit)
          .forUpdate()
          .skipLocked();
        if (given.busy.length > 0) query.whereNotIn('account_id', given.busy.map(idBytes));
        const due = (await query).map(toDelivery);
        if (due.length === 0) return due;
        await trx('webhook_deliveries')
          .whereIn(
            'id',
            due.map(({ id }) => idBytes(id)),
          )
          .update({ next_attempt_at: given.now + given.leaseMs });
        return due;
      }),
    ),

  /** Writes an attempt and what it leads to. */
  record: (
    delivery: Delivery,
    attempt: AttemptRow,
    to: { status: DeliveryStatus; nextAttemptAt: number | null },
  ): Promise<void> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const { number, at, status, reason, durationMs } = attempt;
        await trx('webhook_attempts')
          .insert({
            delivery_id: idBytes(delivery.id),
            ...{ number, at, status, reason, duration_ms: durationMs },
          })
          .onConflict()
          .ignore();
        await trx('webhook_deliveries')
          .where({ id: idBytes(delivery.id) })
          .update({ attempts: number, status: to.status, next_attempt_at: to.nextAttemptAt });
      }),
    ),
});

const endpoints = (db: Database) => ({
  endpoint: async (accountId: string): Promise<Endpoint | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(accountId) })
      .first('webhook_url', 'webhook_disabled_at');
    if (!row?.webhook_url) return undefined;
    return { url: String(row.webhook_url), disabled: row.webhook_disabled_at !== null };
  },

  /** Notes an endpoint's success, or since when it has failed; answers that time. */
  noteHealth: async (accountId: string, failedAt: number | null): Promise<number | null> => {
    const account = db<Row>('accounts').where({ id: idBytes(accountId) });
    await account.clone().update({
      webhook_failing_since:
        failedAt === null ? null : db.raw('COALESCE(webhook_failing_since, ?)', [failedAt]),
    });
    if (failedAt === null) return null;
    const row = await account.first('webhook_failing_since');
    return numberOrNull(row?.webhook_failing_since ?? null);
  },

  /** Gives an endpoint up: what waits for it is held until it is set again. */
  disable: async (accountId: string, at: number, reason: string): Promise<void> => {
    await db.transaction(async (trx) => {
      const account_id = idBytes(accountId);
      await trx('accounts')
        .where({ id: account_id })
        .update({ webhook_disabled_at: at, webhook_disabled_reason: reason });
      await trx('webhook_deliveries')
        .where({ account_id, status: 'pending' })
        .update({ status: 'held', next_attempt_at: null });
    });
  },

  /** An endpoint was set (again): what was held goes out. */
  enable: async (accountId: string, now: number): Promise<void> => {
    await db.transaction(async (trx) => {
      const account_id = idBytes(accountId);
      const cleared = { webhook_disabled_at: null, webhook_disabled_reason: null };
      await trx('accounts')
        .where({ id: account_id })
        .update({ ...cleared, webhook_failing_since: null });
      await trx('webhook_deliveries')
        .where({ account_id, status: 'held' })
        .update({ status: 'pending', next_attempt_at: now });
    });
  },
});

const read = (db: Database) => ({
  /** Newest first; at most `limit`, older than `before`. */
  list: async (accountId: string, filter: DeliveryFilter): Promise<Delivery[]> => {
    const { before, type, status, from, to, limit } = filter;
    const query = db<Row>('webhook_deliveries')
      .where({ account_id: idBytes(accountId) })
      .orderBy('id', 'desc')
      .limit(limit);
    if (before !== undefined) query.where('id', '<', idBytes(before));
    if (from !== undefined) query.where('id', '>=', idBytes(idAt(from)));
    if (to !== undefined) query.where('id', '<', idBytes(idAt(to)));
    if (type !== undefined) query.where({ type });
    if (status !== undefined) query.where({ status });
    return (await query).map(toDelivery);
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

  /** Lets a delivery go out once more, now; false when the account has no such delivery. */
  redeliver: async (accountId: string, id: string, now: number): Promise<boolean> => {
    const changed = await db('webhook_deliveries')
      .where({ id: idBytes(id), account_id: idBytes(accountId) })
      .update({ status: 'pending', next_attempt_at: now });
    return changed === 1;
  },
});

export type WebhookStore = ReturnType<typeof createWebhookStore>;

export const createWebhookStore = (db: Database) => ({
  ...work(db),
  ...endpoints(db),
  ...read(db),
});

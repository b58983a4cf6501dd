// Probes in MySQL: which endpoints that were given up are asked again, and with which event.
import type { Database } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { type Delivery, type Row, toDelivery } from './delivery.ts';
import type { AttemptRow } from './store.ts';

const failing = { webhook_disabled_reason: 'failing' };

export const createProbeStore = (db: Database) => ({
  /**
   * An account whose endpoint was given up as failing, and neither given up nor probed since `before`; it is this
   * caller's to probe. Undefined when there is none.
   */
  takeProbe: async (before: number, now: number): Promise<string | undefined> => {
    for (;;) {
      const row = await db<Row>('accounts')
        .where(failing)
        .where('webhook_disabled_at', '<=', before)
        .whereNotNull('webhook_url')
        .where((query) =>
          query.whereNull('webhook_probed_at').orWhere('webhook_probed_at', '<=', before),
        )
        .first('id', 'webhook_probed_at');
      if (!row) return undefined;
      const taken = await db('accounts')
        .where({ id: row.id, ...failing, webhook_probed_at: row.webhook_probed_at })
        .update({ webhook_probed_at: now });
      if (taken === 1) return idText(row.id as Buffer);
    }
  },

  /** The oldest of what is held for an account. */
  oldestHeld: async (accountId: string): Promise<Delivery | undefined> => {
    const row = await db<Row>('webhook_deliveries')
      .where({ account_id: idBytes(accountId), status: 'held' })
      .orderBy('id')
      .first();
    return row && toDelivery(row);
  },

  /** Writes down an attempt that leaves its delivery held, unless it was released meanwhile. */
  noteProbe: async ({ id }: Delivery, attempt: AttemptRow): Promise<void> => {
    const changed = await db('webhook_deliveries')
      .where({ id: idBytes(id), status: 'held' })
      .update({ attempts: attempt.number });
    if (changed !== 1) return;
    const { number, at, status, reason, durationMs: duration_ms } = attempt;
    await db('webhook_attempts')
      .insert({ delivery_id: idBytes(id), number, at, status, reason, duration_ms })
      .onConflict()
      .ignore();
  },
});

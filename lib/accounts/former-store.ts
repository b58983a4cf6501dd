// The webhook address before a change: what it is still to hear of, in MySQL, with the address and the secrets of then.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText, newId } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

/** An address as it was: sealed secrets, the newest first, and until when the one before signs (ms). */
export type FormerAddress = {
  url: string;
  secrets: { present: string | null; before: string | null; beforeUntil: number };
};

export type FormerEvent = {
  id: string;
  accountId: string;
  address: FormerAddress;
  event: EventWire;
  /** Attempts made so far. */
  attempts: number;
};

/** The address in a row of accounts; undefined when none is set. */
export const formerAddressOf = (row: Row): FormerAddress | undefined =>
  row.webhook_url === null
    ? undefined
    : {
        url: String(row.webhook_url),
        secrets: {
          present: row.webhook_secret === null ? null : String(row.webhook_secret),
          before: row.webhook_secret_before === null ? null : String(row.webhook_secret_before),
          beforeUntil: Number(row.webhook_secret_before_until ?? 0),
        },
      };

/** Lets a former address hear of an event, within the transaction of the change that made it the former one. */
export const writeFormerEvent = async (
  trx: Database,
  { address, event }: { address: FormerAddress; event: EventWire },
): Promise<void> => {
  await trx('former_address_events').insert({
    id: idBytes(newId()),
    account_id: idBytes(event.account_id),
    url: address.url,
    secrets: JSON.stringify(address.secrets),
    event: JSON.stringify(event),
    next_attempt_at: event.at,
  });
};

const toFormerEvent = (row: Row): FormerEvent => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  address: {
    url: String(row.url),
    secrets: JSON.parse(String(row.secrets)) as FormerAddress['secrets'],
  },
  event: JSON.parse(String(row.event)) as EventWire,
  attempts: Number(row.attempts),
});

export type FormerAddressStore = ReturnType<typeof createFormerAddressStore>;

export const createFormerAddressStore = (db: Database) => ({
  /** At most `limit` events that are due; nobody else takes them before `until` (ms). */
  take: (now: number, { until, limit }: { until: number; limit: number }): Promise<FormerEvent[]> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const rows: Row[] = await trx<Row>('former_address_events')
          .where('next_attempt_at', '<=', now)
          .orderBy('next_attempt_at')
          .limit(limit)
          .forUpdate()
          .skipLocked();
        if (rows.length === 0) return [];
        const ids = rows.map(({ id }) => id as Buffer);
        await trx('former_address_events').whereIn('id', ids).update({ next_attempt_at: until });
        return rows.map(toFormerEvent);
      }),
    ),

  /** Notes an attempt; the next one is at `at` (ms). */
  again: async (id: string, at: number): Promise<void> => {
    await db('former_address_events')
      .where({ id: idBytes(id) })
      .update({ attempts: db.raw('attempts + 1'), next_attempt_at: at });
  },

  /** The event is out, or is not tried any more. */
  drop: async (id: string): Promise<void> => {
    await db('former_address_events')
      .where({ id: idBytes(id) })
      .delete();
  },
});

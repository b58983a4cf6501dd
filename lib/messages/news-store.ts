// Events that are still to be heard of, in MySQL: written with what they tell of, struck off once they are out.
import type { Database } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

// Ids of events are derived: 16 bytes that are no UUID.
const eventBytes = (id: string): Buffer => Buffer.from(id, 'hex');

const fromRow = (row: Row): EventWire => ({
  id: (row.id as Buffer).toString('hex'),
  type: String(row.type),
  at: Number(row.at),
  account_id: idText(row.account_id as Buffer),
  mode: row.mode as EventWire['mode'],
  message: row.message === null ? null : (JSON.parse(String(row.message)) as EventWire['message']),
  request_id: String(row.request_id),
  data: JSON.parse(String(row.data)) as EventWire['data'],
});

/** Writes events inside the transaction of what they tell of. The same event twice is one. */
export const insertNews = async (trx: Database, events: readonly EventWire[]): Promise<void> => {
  if (events.length === 0) return;
  await trx('account_news')
    .insert(
      events.map(({ id, type, at, account_id, mode, message, request_id, data }) => ({
        ...{ id: eventBytes(id), account_id: idBytes(account_id), type, mode, request_id, at },
        data: JSON.stringify(data),
        message: message === null ? null : JSON.stringify(message),
      })),
    )
    // Not IGNORE, which would keep more than duplicates quiet.
    .onConflict('id')
    .merge(['id']);
};

export type NewsStore = ReturnType<typeof createNewsStore>;

export const createNewsStore = (db: Database) => ({
  /** Keeps an event that the broker did not take; the next round tells it. */
  keep: (event: EventWire): Promise<void> => insertNews(db, [event]),

  /** The oldest events from before `at` (ms) that are not out yet. */
  leftBefore: async (at: number, limit: number): Promise<EventWire[]> => {
    const rows = await db<Row>('account_news').where('at', '<', at).orderBy('at').limit(limit);
    return rows.map(fromRow);
  },

  strike: async (id: string): Promise<void> => {
    await db('account_news')
      .where({ id: eventBytes(id) })
      .delete();
  },
});

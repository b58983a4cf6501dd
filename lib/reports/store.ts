// Messages as their owner reads them: pages of a list and the steps of one.
import type { Database } from '../infra/mysql.ts';
import { idAt, idBytes, idText, idTime } from '../kernel/ids.ts';
import type { ChannelName, MessageStatus, Mode } from '../messages/rules.ts';
import type { Attempt, MessageEvent, Posted } from './timeline.ts';

type Row = Record<string, unknown>;

export type MessageFilter = {
  before: string | undefined;
  status: MessageStatus | undefined;
  channel: ChannelName | undefined;
  mode: Mode | undefined;
  /** Creation, ms: inclusive, exclusive. */
  from: number | undefined;
  to: number | undefined;
  limit: number;
};

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const toItem = (row: Row) => ({
  id: idText(row.id as Buffer),
  phone: String(row.phone),
  country: String(row.country),
  origin: String(row.origin) as 'send' | 'deliver',
  status: row.status as MessageStatus,
  channel: row.channel as ChannelName | null,
  mode: row.mode as Mode,
  plan: String(row.plan),
  priceMicros: Number(row.price_micros),
  expiresAt: numberOrNull(row.expires_at),
  deliveredAt: numberOrNull(row.delivered_at),
  verifiedAt: numberOrNull(row.verified_at),
  failureReason: row.failure_reason === null ? null : String(row.failure_reason),
});

export type MessageItem = ReturnType<typeof toItem>;

export type ReportStore = ReturnType<typeof createReportStore>;

export const createReportStore = (db: Database) => ({
  /** Newest first. The id is the time, so every bound and cursor is a bound on the index alone. */
  list: async (accountId: string, filter: MessageFilter): Promise<MessageItem[]> => {
    const { before, status, channel, mode, from, to, limit } = filter;
    const query = db<Row>('messages')
      .where({ account_id: idBytes(accountId) })
      .orderBy('id', 'desc')
      .limit(limit);
    if (before !== undefined) query.where('id', '<', idBytes(before));
    if (from !== undefined) query.where('id', '>=', idBytes(idAt(from)));
    if (to !== undefined) query.where('id', '<', idBytes(idAt(to)));
    if (status !== undefined) query.where({ status });
    if (channel !== undefined) query.where({ channel });
    if (mode !== undefined) query.where({ mode });
    return (await query).map(toItem);
  },

  find: async (accountId: string, id: string): Promise<MessageItem | undefined> => {
    const row = await db<Row>('messages')
      .where({ account_id: idBytes(accountId), id: idBytes(id) })
      .first();
    return row === undefined ? undefined : toItem(row);
  },

  /** The events of a message. */
  events: async (id: string): Promise<MessageEvent[]> => {
    const rows = await db<Row>('message_events').where({ message_id: idBytes(id) });
    return rows.map((row) => ({
      id: (row.event_id as Buffer).toString('hex'),
      at: Number(row.at),
      type: String(row.type),
      data: typeof row.data === 'string' ? JSON.parse(row.data) : row.data,
    }));
  },

  /** What a message was charged, and what it gave back. */
  postings: async (accountId: string, id: string): Promise<Posted[]> => {
    const rows = await db<Row>('ledger')
      .where({ account_id: idBytes(accountId) })
      .whereIn('reference', [`charge:${id}`, `refund:${id}`]);
    return rows.map((row) => ({
      at: idTime(idText(row.id as Buffer)),
      kind: row.kind as 'charge' | 'refund',
      amountMicros: Number(row.amount_micros),
    }));
  },

  /** Every attempt at telling the account's webhook of these events (hex ids). */
  webhookAttempts: async (accountId: string, eventIds: readonly string[]): Promise<Attempt[]> => {
    const rows = await db<Row>('webhook_deliveries AS d')
      .join('webhook_attempts AS a', 'a.delivery_id', 'd.id')
      .where({ 'd.account_id': idBytes(accountId) })
      .whereIn(
        'd.event_id',
        eventIds.map((eventId) => Buffer.from(eventId, 'hex')),
      )
      .select('d.type', 'a.number', 'a.at', 'a.status', 'a.reason');
    return rows.map((row) => ({
      at: Number(row.at),
      event: String(row.type),
      number: Number(row.number),
      httpStatus: numberOrNull(row.status),
      reason: row.reason === null ? null : String(row.reason),
    }));
  },
});

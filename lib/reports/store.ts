// Messages as their owner reads them: pages of a list and the steps of one.
import type { Database } from '../infra/mysql.ts';
import { idAt, idBytes, idText } from '../kernel/ids.ts';
import type { ChannelName, MessageStatus, Mode } from '../messages/rules.ts';

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

  /** What happened to a message, in the order in which it happened. */
  steps: async (id: string) => {
    const rows = await db<Row>('message_events')
      .where({ message_id: idBytes(id) })
      .orderBy(['at', 'event_id']);
    return rows.map((row) => ({
      at: Number(row.at),
      type: String(row.type),
      requestId: String(row.request_id),
      data: (typeof row.data === 'string' ? JSON.parse(row.data) : row.data) as Record<
        string,
        unknown
      >,
    }));
  },
});

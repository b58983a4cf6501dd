// Messages as their owner reads them: pages of a list, the steps of one, and counts over days.
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

/** Counts of messages that were created in one span of time, over one channel. */
export type Bucket = {
  /** Begin of the span, ms. */
  at: number;
  channel: ChannelName | null;
  requested: number;
  accepted: number;
  delivered: number;
  verified: number;
  failed: number;
  expired: number;
  spentMicros: number;
  deliverMs: number;
  verifyMs: number;
};

const toBucket = (row: Row): Bucket => ({
  at: Number(row.bucket),
  channel: row.channel as ChannelName | null,
  requested: Number(row.requested),
  accepted: Number(row.accepted),
  delivered: Number(row.delivered),
  verified: Number(row.verified),
  failed: Number(row.failed),
  expired: Number(row.expired),
  spentMicros: Number(row.spent),
  deliverMs: Number(row.deliver_ms),
  verifyMs: Number(row.verify_ms),
});

// A message that arrived was delivered whether or not a receipt said so: a verification proves it.
const arrived = '(delivered_at IS NOT NULL OR read_at IS NOT NULL OR verified_at IS NOT NULL)';

// The creation of a row is in its id (UUIDv7): the first 48 bits are milliseconds.
const created = 'CONV(HEX(SUBSTR(id, 1, 6)), 16, 10)';

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

  /** Live messages that were created in [from, to), counted by spans of `spanMs` and by channel. */
  count: async (
    accountId: string,
    { from, to, spanMs }: { from: number; to: number; spanMs: number },
  ): Promise<Bucket[]> => {
    const [rows] = (await db.raw(
      `SELECT FLOOR(${created} / ?) * ? AS bucket, channel, COUNT(*) AS requested,
         SUM(accepted_at IS NOT NULL) AS accepted, SUM(${arrived}) AS delivered,
         SUM(status = 'verified') AS verified, SUM(status = 'failed') AS failed,
         SUM(status = 'expired') AS expired,
         SUM(CASE WHEN plan = 'pay_per_success' AND status = 'verified' THEN price_micros
           WHEN plan = 'per_message' AND accepted_at IS NOT NULL AND status <> 'failed' THEN price_micros
           ELSE 0 END) AS spent,
         COALESCE(SUM(delivered_at - accepted_at), 0) AS deliver_ms,
         COALESCE(SUM(verified_at - accepted_at), 0) AS verify_ms
       FROM messages
       WHERE account_id = ? AND id >= ? AND id < ? AND mode = 'live'
       GROUP BY bucket, channel ORDER BY bucket`,
      [spanMs, spanMs, idBytes(accountId), idBytes(idAt(from)), idBytes(idAt(to))],
    )) as [Row[]];
    return rows.map(toBucket);
  },
});

// Messages as their owner reads them: pages of a list and the steps of one.
import type { Database } from '../infra/mysql.ts';
import { belowOf, byIndex, kindsOf, rowsOfKinds } from '../infra/newest.ts';
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

const bytesOrNothing = (id: string | undefined): Buffer | undefined =>
  id === undefined ? undefined : idBytes(id);

const wantedKinds = ({ mode, status, channel }: MessageFilter) =>
  kindsOf([
    mode === undefined ? ['live', 'test'] : [mode],
    status === undefined ? ['sent', 'verified', 'failed', 'expired'] : [status],
    channel === undefined ? ['whatsapp', 'telegram', null] : [channel],
  ]);

const createLists = (db: Database) => {
  /** Every row of the account fits: they stand in the order of their ids. */
  const anyKind = (accountId: string, filter: MessageFilter): Promise<Row[]> => {
    const below = belowOf(filter);
    const query = db<Row>(byIndex(db, 'messages', 'messages_by_account'))
      .where({ account_id: idBytes(accountId) })
      .orderBy('id', 'desc')
      .limit(filter.limit);
    if (below !== undefined) query.where('id', '<', idBytes(below));
    if (filter.from !== undefined) query.where('id', '>=', idBytes(idAt(filter.from)));
    return query as unknown as Promise<Row[]>;
  };

  const someKinds = (accountId: string, filter: MessageFilter): Promise<Row[]> =>
    rowsOfKinds(db, filter.limit, {
      ...{ table: 'messages', index: 'messages_by_kind', accountId: idBytes(accountId) },
      ...{ columns: ['mode', 'status', 'channel'], kinds: wantedKinds(filter) },
      from: filter.from === undefined ? undefined : idBytes(idAt(filter.from)),
      below: bytesOrNothing(belowOf(filter)),
    });

  return {
    /** Newest first. */
    list: async (accountId: string, filter: MessageFilter): Promise<MessageItem[]> => {
      const { status, channel, mode } = filter;
      const all = status === undefined && channel === undefined && mode === undefined;
      return (await (all ? anyKind : someKinds)(accountId, filter)).map(toItem);
    },
  };
};

export const createReportStore = (db: Database) => ({
  ...createLists(db),

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

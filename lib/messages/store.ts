// Messages in MySQL: facts are merged into rows in groups, and read back.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { isOutage } from '../infra/outages.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import {
  dueAt,
  type Facts,
  type FailureReason,
  type Message,
  type MessageStatus,
  statusOf,
} from './rules.ts';
import { createVerifications } from './verified-store.ts';

export type StoredMessage = { message: Message; facts: Facts; status: MessageStatus };

type Row = Record<string, unknown>;

const columns = [
  'id',
  'account_id',
  'mode',
  'origin',
  'phone',
  'country',
  'request_id',
  'plan',
  'price_micros',
  'status',
  'channel',
  'accepted_at',
  'expires_at',
  'delivered_at',
  'read_at',
  'verified_at',
  'failed_at',
  'failure_reason',
  'expired_at',
  'due_at',
  'own',
] as const;

const earliest = (column: string): string =>
  `${column} = LEAST(COALESCE(${column}, VALUES(${column})), COALESCE(VALUES(${column}), ${column}))`;

// The SQL twin of joinFacts, statusOf and dueAt (rules.ts; a property test holds them together). Assignments are
// made from left to right, so status and due_at see the merged facts.
const merge = `INSERT INTO messages (${columns.join(', ')}) VALUES ?
  ON DUPLICATE KEY UPDATE
  channel = IF('telegram' IN (channel, VALUES(channel)), 'telegram', COALESCE(channel, VALUES(channel))),
  own = own OR VALUES(own),
  failure_reason = IF(VALUES(failed_at) IS NOT NULL AND (failed_at IS NULL OR VALUES(failed_at) < failed_at), VALUES(failure_reason), failure_reason),
  ${['accepted_at', 'expires_at', 'delivered_at', 'read_at', 'verified_at', 'failed_at', 'expired_at'].map(earliest).join(', ')},
  status = CASE
    WHEN verified_at IS NOT NULL THEN 'verified'
    WHEN failed_at IS NOT NULL AND delivered_at IS NULL AND read_at IS NULL THEN 'failed'
    WHEN expired_at IS NOT NULL THEN 'expired'
    ELSE 'sent' END,
  due_at = CASE
    WHEN status = 'failed' THEN expires_at
    WHEN status <> 'sent' OR expires_at IS NULL OR accepted_at IS NULL THEN NULL
    WHEN channel = 'whatsapp' AND delivered_at IS NULL AND read_at IS NULL THEN LEAST(accepted_at + ?, expires_at)
    ELSE expires_at END`;

const toValues = (
  message: Message,
  facts: Facts,
  deliverySeconds: number,
  own = false,
): unknown[] => [
  idBytes(message.id),
  idBytes(message.accountId),
  message.mode,
  message.origin,
  message.phone,
  message.country,
  message.requestId,
  message.plan,
  message.priceMicros,
  statusOf(facts),
  facts.channel,
  facts.acceptedAt,
  facts.expiresAt,
  facts.deliveredAt,
  facts.readAt,
  facts.verifiedAt,
  facts.failedAt,
  facts.failureReason,
  facts.expiredAt,
  dueAt(facts, deliverySeconds),
  own,
];

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const fromRow = (row: Row): StoredMessage => ({
  status: row.status as MessageStatus,
  message: {
    id: idText(row.id as Buffer),
    accountId: idText(row.account_id as Buffer),
    mode: row.mode as Message['mode'],
    origin: row.origin as Message['origin'],
    phone: String(row.phone),
    country: String(row.country),
    requestId: String(row.request_id),
    plan: row.plan as Message['plan'],
    priceMicros: Number(row.price_micros),
    idempotencyHash: null,
  },
  facts: {
    channel: row.channel as Facts['channel'],
    acceptedAt: numberOrNull(row.accepted_at),
    expiresAt: numberOrNull(row.expires_at),
    deliveredAt: numberOrNull(row.delivered_at),
    readAt: numberOrNull(row.read_at),
    verifiedAt: numberOrNull(row.verified_at),
    failedAt: numberOrNull(row.failed_at),
    failureReason: row.failure_reason as FailureReason | null,
    expiredAt: numberOrNull(row.expired_at),
  },
});

const urgentMs = 1;
const patientMs = 25;

export type MessageStore = ReturnType<typeof createMessageStore>;

/**
 * The messages table. `deliverySeconds` is the template's lifetime; single merges that come within a few
 * milliseconds share one statement and one commit.
 */
export const createMessageStore = (db: Database, deliverySeconds: number) => {
  const createGroup = (maxWaitMs: number) =>
    createGrouper<unknown[], undefined>({
      maxSize: 200,
      maxWaitMs,
      busy: { items: 4, waitMs: 10 },
      blamesOne: (error) => !isOutage(error),
      run: async (rows) => {
        await withLockRetry(() =>
          db.raw(merge, [rows as unknown as string, deliverySeconds * 1000]),
        );
        return [];
      },
    });

  const urgent = createGroup(urgentMs);
  const patient = createGroup(patientMs);
  const add = async (message: Message, facts: Facts, own = false): Promise<void> => {
    await urgent.add(toValues(message, facts, deliverySeconds, own));
  };
  const verifications = createVerifications(db, ({ message, facts }) => add(message, facts));

  return {
    /**
     * Adds facts to a message, creating its row if this is the first news; resolves after the commit. `own` says that
     * it was admitted for the account's own number.
     */
    merge: add,

    /** The same for a verification with what its verifier knows of the message. */
    verified: (message: Message, facts: Facts): Promise<void> =>
      verifications.verify({ message, facts }),

    /** The same for news that nobody waits for: it gathers a little longer. */
    mergeLater: async (message: Message, facts: Facts): Promise<void> => {
      await patient.add(toValues(message, facts, deliverySeconds));
    },

    find: async (accountId: string, id: string): Promise<StoredMessage | undefined> => {
      const row = await db('messages')
        .where({ id: idBytes(id), account_id: idBytes(accountId) })
        .first();
      return row === undefined ? undefined : fromRow(row);
    },

    /** For workers, which know no account: the messages with these ids. */
    findAll: async (ids: string[]): Promise<StoredMessage[]> =>
      (await db<Row>('messages').whereIn('id', ids.map(idBytes))).map(fromRow),

    /**
     * Ids of at most `limit` messages whose time has come, each leased for `leaseMs`: another call, here or in
     * another process, does not return them before.
     */
    takeDue: async (now: number, leaseMs: number, limit: number): Promise<string[]> =>
      db.transaction(async (trx) => {
        const rows: Row[] = await trx('messages')
          .select('id')
          .where('due_at', '<=', now)
          .orderBy('due_at')
          .limit(limit)
          .forUpdate()
          .skipLocked();
        if (rows.length === 0) return [];
        const ids = rows.map((row) => row.id as Buffer);
        await trx('messages')
          .whereIn('id', ids)
          .update({ due_at: now + leaseMs });
        return ids.map(idText);
      }),

    /** Failed messages that nobody has to look at any more; what is told of them later makes them due anew. */
    settleFailed: async (ids: readonly string[]): Promise<void> => {
      if (ids.length === 0) return;
      const failed = db('messages').whereIn('id', ids.map(idBytes)).where({ status: 'failed' });
      await failed.update({ due_at: null });
    },

    drain: async (): Promise<void> => {
      // Some of its own are merged in the end.
      await verifications.drain();
      await Promise.all([urgent.drain(), patient.drain()]);
    },
  };
};

// The work on deliveries in MySQL: added, taken by one process at a time, put to wait, written down, and dropped.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { day } from '../kernel/clock.ts';
import { idAt, idBytes, idText } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import { type Delivery, type DeliveryStatus, type Row, toDelivery } from './delivery.ts';
import type { AttemptRow } from './store.ts';

/** Where a new delivery begins: with this process until then, due for any, or waiting for its endpoint's turn. */
export type Place = { kind: 'leased'; until: number } | { kind: 'due' } | { kind: 'waiting' };

export type NewDelivery = {
  id: string;
  accountId: string;
  eventId: string;
  type: string;
  mode: Mode;
  body: string;
  place: Place;
};

/** An attempt and what it leads to; one off the schedule (`counted` false) leaves the schedule where it was. */
export type Recorded = {
  delivery: Delivery;
  attempt: AttemptRow;
  counted: boolean;
  to: { status: DeliveryStatus; nextAttemptAt: number | null };
};

/** What waits is looked at again after this long, or half its age, should the process that keeps it in mind be gone. */
const lookAgainMs = 15_000;
export const keptMs = 30 * day;

const insert = `INSERT IGNORE INTO webhook_deliveries
  (id, account_id, event_id, type, mode, body, status, created_at, next_attempt_at, running_until) VALUES ?`;

const insertAttempts = `INSERT IGNORE INTO webhook_attempts
  (delivery_id, number, at, status, reason, duration_ms) VALUES ?`;

type Bound = string | number | Buffer | null;

const placed = (place: Place, now: number): Bound[] => {
  if (place.kind === 'leased') return ['pending', now, place.until, place.until];
  if (place.kind === 'due') return ['pending', now, now, null];
  return ['waiting', now, now + lookAgainMs, null];
};

const deliveryValues = (
  { id, accountId, eventId, type, mode, body, place }: NewDelivery,
  now: number,
) => [
  idBytes(id),
  idBytes(accountId),
  Buffer.from(eventId, 'hex'),
  type,
  mode,
  // As bytes it is bound at a quarter of the cost: nothing in it has to be escaped.
  Buffer.from(body),
  ...placed(place, now),
];

const attemptValues = ({ delivery, attempt }: Recorded): Bound[] => {
  const { number, at, status, reason, durationMs } = attempt;
  return [idBytes(delivery.id), number, at, status, reason, durationMs];
};

const park = `UPDATE webhook_deliveries SET status = 'waiting', running_until = NULL, manual = ?,
  next_attempt_at = ? + GREATEST(${lookAgainMs}, (CAST(? AS SIGNED) - CAST(created_at AS SIGNED)) DIV 2)
  WHERE id IN (?)`;

// Under the lock of the account's row: an address that is set meanwhile finds either nothing held or all of it.
const hold = `UPDATE webhook_deliveries d JOIN accounts a ON a.id = d.account_id
  SET d.status = 'held', d.next_attempt_at = NULL, d.running_until = NULL, d.manual = 0
  WHERE d.id IN (?) AND a.webhook_disabled_at IS NOT NULL`;

const delivered = `UPDATE webhook_deliveries
  SET status = IF(manual = 1, 'pending', 'delivered'), next_attempt_at = IF(manual = 1, ?, NULL),
  delivered_at = COALESCE(delivered_at, ?), attempts = attempts + 1, tries = tries + 1, running_until = NULL
  WHERE id IN (?)`;

// What was delivered once stays so, whatever becomes of a further attempt.
const failed = `UPDATE webhook_deliveries
  SET status = IF(manual = 1, 'pending', IF(delivered_at IS NULL, 'failed', 'delivered')),
  next_attempt_at = IF(manual = 1, ?, NULL), attempts = attempts + 1, tries = tries + ?, running_until = NULL
  WHERE id IN (?)`;

/** Each has a time of its own: they are listed, so that all of them are one statement. */
const again = (count: number): string => `UPDATE webhook_deliveries
  SET status = IF(manual = 1 OR delivered_at IS NULL, 'pending', 'delivered'),
  next_attempt_at = IF(manual = 1, ?, IF(delivered_at IS NULL, CASE id ${'WHEN ? THEN ? '.repeat(count)}END, NULL)),
  attempts = attempts + 1, tries = tries + ?, running_until = NULL
  WHERE id IN (?)`;

const bytesOf = (rows: readonly { id: string }[]): Buffer[] => rows.map(({ id }) => idBytes(id));
const bound = (value: unknown): string => value as string;

const adding = (db: Database) => ({
  /** Adds deliveries; answers the ids of those that were new: an event that an account has already is passed over. */
  add: async (rows: readonly NewDelivery[], now: number): Promise<ReadonlySet<string>> => {
    const ids = new Set(rows.map(({ id }) => id));
    if (rows.length === 0) return ids;
    const values = rows.map((row) => deliveryValues(row, now));
    const [{ affectedRows }] = (await withLockRetry(() => db.raw(insert, [bound(values)]))) as [
      { affectedRows: number },
    ];
    if (affectedRows === rows.length) return ids;
    const found: Row[] = await db('webhook_deliveries').whereIn('id', bytesOf(rows)).select('id');
    return new Set(found.map(({ id }) => idText(id as Buffer)));
  },

  /** Lets deliveries wait until there is room at their endpoint. */
  park: async (deliveries: readonly Delivery[], now: number): Promise<void> => {
    for (const manual of [false, true]) {
      const chosen = deliveries.filter((delivery) => delivery.manual === manual);
      if (chosen.length === 0) continue;
      await withLockRetry(() => db.raw(park, [manual ? 1 : 0, now, now, bound(bytesOf(chosen))]));
    }
  },

  /** Gives deliveries back to whoever comes first. */
  giveBack: async (deliveries: readonly Delivery[], now: number): Promise<void> => {
    if (deliveries.length === 0) return;
    await db('webhook_deliveries')
      .whereIn('id', bytesOf(deliveries))
      .where({ status: 'pending' })
      .update({ next_attempt_at: now, running_until: null });
  },

  /** Holds deliveries of endpoints that are given up; those of one that was set meanwhile are due at once. */
  hold: async (deliveries: readonly Delivery[], now: number): Promise<void> => {
    if (deliveries.length === 0) return;
    await withLockRetry(() => db.raw(hold, [bound(bytesOf(deliveries))]));
    await db('webhook_deliveries')
      .whereIn('id', bytesOf(deliveries))
      .whereNot({ status: 'held' })
      .update({ status: 'pending', next_attempt_at: now, running_until: null });
  },
});

type Take = { now: number; leaseMs: number; limit: number };
/** `waited`: it was put to wait for its endpoint's turn, as others there may be. */
export type Taken = Delivery & { waited: boolean };

const taking = (db: Database) => {
  const take = (given: Take, choose: (query: ReturnType<Database['queryBuilder']>) => void) =>
    withLockRetry(() =>
      db.transaction(
        async (trx) => {
          const query = trx<Row>('webhook_deliveries').limit(given.limit).forUpdate().skipLocked();
          choose(query);
          const found = await query;
          if (found.length === 0) return [];
          const until = given.now + given.leaseMs;
          await trx('webhook_deliveries')
            .whereIn(
              'id',
              found.map(({ id }) => id as Buffer),
            )
            .update({ status: 'pending', next_attempt_at: until, running_until: until, manual: 0 });
          return found.map((row): Taken => {
            const waited = row.status === 'waiting';
            return { ...toDelivery(row), runningUntil: until, waited };
          });
        },
        // Rows alone are locked, not the gaps between them, into which others add.
        { isolationLevel: 'read committed' },
      ),
    );

  return {
    /** At most `limit` deliveries that are due, leased for `leaseMs`: nobody else takes them before. */
    takeDue: (given: Take): Promise<Taken[]> =>
      take(given, (query) => {
        query.where('next_attempt_at', '<=', given.now).orderBy('next_attempt_at');
      }),

    /** The same of what waits for the turn of one account's endpoint. */
    takeWaiting: (accountId: string, given: Take & { newestFirst: boolean }): Promise<Taken[]> =>
      take(given, (query) => {
        query
          .where({ account_id: idBytes(accountId), status: 'waiting' })
          .orderBy('id', given.newestFirst ? 'desc' : 'asc');
      }),
  };
};

const timesOf = (some: readonly Recorded[]): (Buffer | number | null)[] =>
  some.flatMap(({ delivery, to }) => [idBytes(delivery.id), to.nextAttemptAt]);

const recording = (db: Database) => {
  const write = async (sql: string, values: readonly unknown[]): Promise<void> => {
    await withLockRetry(() => db.raw(sql, values.map(bound)));
  };

  /** What leads to the same status, and counts alike, is one statement. */
  const writeSome = (some: readonly Recorded[], now: number): Promise<void> => {
    const [{ to, counted } = {}] = some;
    const tries = counted ? 1 : 0;
    const ids = bytesOf(some.map(({ delivery }) => delivery));
    if (to?.status === 'delivered') return write(delivered, [now, now, ids]);
    if (to?.status === 'failed') return write(failed, [now, tries, ids]);
    return write(again(some.length), [now, ...timesOf(some), tries, ids]);
  };

  return {
    /**
     * Writes attempts, and then what they lead to. No transaction: when only the first comes about, the delivery goes
     * out once more when its lease ends, as it would with neither.
     */
    record: async (all: readonly Recorded[], now: number): Promise<void> => {
      if (all.length === 0) return;
      await write(insertAttempts, [all.map(attemptValues)]);
      const kinds = Map.groupBy(all, ({ to, counted }) => `${to.status} ${counted}`);
      for (const some of kinds.values()) await writeSome(some, now);
    },

    /** Drops what is older than 30 days, at most `limit` rows of each table; answers whether more may be left. */
    purge: async (now: number, limit: number): Promise<boolean> => {
      const oldest = idBytes(idAt(now - keptMs));
      // Attempts first: what is left without its delivery would never be found again.
      const counts = await Promise.all(
        [
          ['webhook_attempts', 'delivery_id'],
          ['webhook_replays', 'id'],
        ].map(([table = '', key = '']) => db(table).where(key, '<', oldest).limit(limit).delete()),
      );
      if (counts.some((count) => count === limit)) return true;
      return (
        (await db('webhook_deliveries').where('id', '<', oldest).limit(limit).delete()) === limit
      );
    },
  };
};

export const createWorkStore = (db: Database) => ({
  ...adding(db),
  ...taking(db),
  ...recording(db),
});

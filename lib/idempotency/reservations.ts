// The second line of idempotency: a unique key in MySQL, for the day Redis has forgotten.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { isOutage } from '../infra/outages.ts';
import { day } from '../kernel/clock.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { Message } from '../messages/rules.ts';

type Reservable = Pick<Message, 'id' | 'accountId' | 'mode'> & { idempotencyHash: string };

// An entry past its day belongs to whoever comes next; the assignments see each other's results from left to right.
const reserve = `INSERT INTO idempotency_keys (account_id, mode, key_hash, message_id, expires_at) VALUES ?
  ON DUPLICATE KEY UPDATE
  message_id = IF(expires_at < ?, VALUES(message_id), message_id),
  expires_at = IF(message_id = VALUES(message_id), VALUES(expires_at), expires_at)`;

const owners = `SELECT account_id, mode, key_hash, message_id FROM idempotency_keys
  WHERE (account_id, mode, key_hash) IN (?)`;

type OwnerRow = { account_id: Buffer; mode: string; key_hash: Buffer; message_id: Buffer };

const tupleOf = (item: Reservable): [Buffer, string, Buffer] => [
  idBytes(item.accountId),
  item.mode,
  Buffer.from(item.idempotencyHash, 'hex'),
];

const nameOf = (account: Buffer, mode: string, hash: Buffer): string =>
  `${account.toString('hex')}:${mode}:${hash.toString('hex')}`;

export type Reservations = {
  /** The id of the message that owns the key: this one's, unless another was sent under it. */
  reserve(message: Reservable): Promise<string>;
  /** Nothing was sent: the key is free again. */
  release(message: Pick<Message, 'id' | 'accountId' | 'mode' | 'idempotencyHash'>): Promise<void>;
  /** Forgets at most `limit` keys past their day; answers how many. */
  purge(now: number, limit: number): Promise<number>;
};

/** Reservations of Idempotency-Keys for a day; `now` is a clock in ms. */
export const createReservations = (db: Database, now: () => number): Reservations => {
  const grouped = createGrouper<Reservable, string>({
    maxSize: 100,
    maxWaitMs: 2,
    blamesOne: (error) => !isOutage(error),
    run: async (items) => {
      const at = now();
      const rows = items.map((item) => [...tupleOf(item), idBytes(item.id), at + day]);
      await withLockRetry(() => db.raw(reserve, [rows as unknown as string, at]));
      const tuples = items.map(tupleOf) as unknown as string[];
      const [found] = (await db.raw(owners, [tuples])) as [OwnerRow[]];
      const owner = new Map(
        found.map((row) => [
          nameOf(row.account_id, row.mode, row.key_hash),
          idText(row.message_id),
        ]),
      );
      return items.map((item) => owner.get(nameOf(...tupleOf(item))) ?? item.id);
    },
  });

  return {
    reserve: (message) => grouped.add(message),
    release: async ({ id, accountId, mode, idempotencyHash }) => {
      if (idempotencyHash === null) return;
      const [account, , hash] = tupleOf({ id, accountId, mode, idempotencyHash });
      await db('idempotency_keys')
        .where({ account_id: account, mode, key_hash: hash, message_id: idBytes(id) })
        .delete();
    },
    purge: (at, limit) => db('idempotency_keys').where('expires_at', '<', at).limit(limit).delete(),
  };
};

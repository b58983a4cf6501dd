// The epochs of revocations in MySQL: the witness that is there whenever a change could be written.
import { randomUUID } from 'node:crypto';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { shardOf } from './shards.ts';

const table = 'revocation_epochs';

const writeEpoch = async (db: Database, id: number, epoch: string): Promise<void> => {
  await db(table).insert({ id, epoch }).onConflict('id').merge(['epoch']);
};

/**
 * Makes every process forget what it remembers of the account (of everybody, without one) as soon as `trx` is
 * committed: the news is part of the change, so no crash comes between them. Last in its transaction: everybody who
 * changes something of the same shard passes this row.
 */
export const advanceEpoch = (trx: Database, accountId?: string): Promise<void> =>
  writeEpoch(trx, shardOf(accountId), randomUUID());

/** Makes a change that every process remembers, together with its news: of an account, or of everybody without one. */
export const changeKnown = <T>(
  db: Database,
  accountId: string | undefined,
  change: (trx: Database) => Promise<T>,
): Promise<T> =>
  withLockRetry(() =>
    db.transaction(async (trx): Promise<T> => {
      const changed = await change(trx);
      await advanceEpoch(trx, accountId);
      return changed;
    }),
  );

/** The same for several accounts: shards are passed in one order, so that nobody waits in a circle. */
export const advanceEpochs = async (trx: Database, ids: readonly string[]): Promise<void> => {
  const shards = [...new Set(ids.map(shardOf))].toSorted((one, other) => one - other);
  for (const shard of shards) await writeEpoch(trx, shard, randomUUID());
};

export type EpochStore = ReturnType<typeof createEpochStore>;

export const createEpochStore = (db: Database) => ({
  /** The newest epoch of each shard. */
  read: async (): Promise<Map<number, string>> => {
    const rows = await db<{ id: number; epoch: string }>(table).select('id', 'epoch');
    return new Map(rows.map(({ id, epoch }) => [id, epoch]));
  },

  write: (shard: number, epoch: string): Promise<void> => writeEpoch(db, shard, epoch),
});

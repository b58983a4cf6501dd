// The epoch of revocations in MySQL: the witness that is there whenever a change could be written.
import { randomUUID } from 'node:crypto';
import type { Database } from '../infra/mysql.ts';

const row = { id: 1 };

const writeEpoch = async (db: Database, epoch: string): Promise<void> => {
  await db('revocation_epochs')
    .insert({ ...row, epoch })
    .onConflict('id')
    .merge(['epoch']);
};

/**
 * Makes every process forget what it remembers as soon as `trx` is committed: the news is part of the change, so no
 * crash comes between them. Last in its transaction: everybody who changes something passes this row.
 */
export const advanceEpoch = (trx: Database): Promise<void> => writeEpoch(trx, randomUUID());

export type EpochStore = ReturnType<typeof createEpochStore>;

export const createEpochStore = (db: Database) => ({
  read: async (): Promise<string> => {
    const found = await db<{ epoch: string }>('revocation_epochs').where(row).first('epoch');
    return found?.epoch ?? 'none';
  },

  write: (epoch: string): Promise<void> => writeEpoch(db, epoch),
});

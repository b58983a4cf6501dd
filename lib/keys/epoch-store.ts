// The epoch of revocations in MySQL: the witness that is there whenever a change could be written.
import type { Database } from '../infra/mysql.ts';

const row = { id: 1 };

export type EpochStore = ReturnType<typeof createEpochStore>;

export const createEpochStore = (db: Database) => ({
  read: async (): Promise<string> => {
    const found = await db<{ epoch: string }>('revocation_epochs').where(row).first('epoch');
    return found?.epoch ?? 'none';
  },

  write: async (epoch: string): Promise<void> => {
    await db('revocation_epochs')
      .insert({ ...row, epoch })
      .onConflict('id')
      .merge(['epoch']);
  },
});

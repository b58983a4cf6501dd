// The second factors of accounts in MySQL: seeds, steps and recovery codes.
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';
import { type Ending, endAccess } from './credential-store.ts';

type Row = Record<string, unknown>;

export type RecoverySet = { salt: Buffer; hashes: readonly Buffer[] };

const writeRecovery = async (
  trx: Database,
  account_id: Buffer,
  { salt, hashes }: RecoverySet,
): Promise<void> => {
  await trx('recovery_codes').where({ account_id }).delete();
  await trx('recovery_codes').insert(hashes.map((hash) => ({ account_id, hash })));
  await trx('account_factors').where({ account_id }).update({ recovery_salt: salt });
};

const setUp = (db: Database) => ({
  isEnabled: async (accountId: string): Promise<boolean> =>
    (await db('accounts')
      .where({ id: idBytes(accountId) })
      .whereNotNull('mfa_enabled_at')
      .first('id')) !== undefined,

  /** Keeps a sealed seed that waits for its first code; false when a factor is set up already. */
  setPending: (accountId: string, sealed: string, until: number): Promise<boolean> =>
    db.transaction(async (trx) => {
      const id = idBytes(accountId);
      const row = await trx<Row>('accounts').where({ id }).forUpdate().first('mfa_enabled_at');
      if (!row || row.mfa_enabled_at !== null) return false;
      const pending = { pending_seed: sealed, pending_until: until };
      await trx('account_factors')
        .insert({ account_id: id, ...pending })
        .onConflict()
        .merge(pending);
      return true;
    }),

  findPending: async (accountId: string, now: number): Promise<string | undefined> => {
    const row = await db<Row>('account_factors')
      .where({ account_id: idBytes(accountId) })
      .where('pending_until', '>', now)
      .first('pending_seed');
    return row ? String(row.pending_seed) : undefined;
  },

  /** Turns the factor on if that seed still waits. */
  confirm: (
    accountId: string,
    given: RecoverySet & { sealed: string; step: number; now: number },
  ): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const account_id = idBytes(accountId);
        await lockAccount(trx, accountId);
        const changed = await trx('account_factors')
          .where({ account_id, pending_seed: given.sealed })
          .update({
            seed: given.sealed,
            ...{ pending_seed: null, pending_until: null, last_step: given.step },
          });
        if (changed === 0) return false;
        await writeRecovery(trx, account_id, given);
        await trx('accounts').where({ id: account_id }).update({ mfa_enabled_at: given.now });
        return true;
      }),
    ),

  /** Turns the factor off and ends what was opened with it; false, and nothing changed, when it was not on. */
  disable: (accountId: string, ending: Ending): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const id = idBytes(accountId);
        const standing = await lockAccount(trx, accountId);
        if (standing?.mfaEnabledAt == null) return false;
        await trx('accounts').where({ id }).update({ mfa_enabled_at: null });
        await trx('account_factors').where({ account_id: id }).delete();
        await trx('recovery_codes').where({ account_id: id }).delete();
        await endAccess(trx, accountId, ending);
        return true;
      }),
    ),
});

const prove = (db: Database) => ({
  findSeed: async (accountId: string): Promise<string | undefined> => {
    const row = await db<Row>('account_factors')
      .where({ account_id: idBytes(accountId) })
      .whereNotNull('seed')
      .first('seed');
    return row ? String(row.seed) : undefined;
  },

  /** Uses a step up: false when it, or a later one, was used before. */
  useStep: async (accountId: string, step: number): Promise<boolean> =>
    (await db('account_factors')
      .where({ account_id: idBytes(accountId) })
      .where('last_step', '<', step)
      .update({ last_step: step })) === 1,

  /** How many codes of the present set are unused, and since when the factor is on. */
  describe: async (accountId: string): Promise<{ confirmedAt: number | null; left: number }> => {
    const id = idBytes(accountId);
    const account = await db<Row>('accounts').where({ id }).first('mfa_enabled_at');
    const [row] = await db('recovery_codes')
      .where({ account_id: id, used_at: null })
      .count({ left: '*' });
    const confirmedAt = account?.mfa_enabled_at ?? null;
    return {
      confirmedAt: confirmedAt === null ? null : Number(confirmedAt),
      left: Number(row?.left ?? 0),
    };
  },

  findRecoveryCodes: async (accountId: string) => {
    const account_id = idBytes(accountId);
    const set = await db<Row>('account_factors').where({ account_id }).first('recovery_salt');
    const rows = await db<Row>('recovery_codes').where({ account_id });
    return {
      salt: set?.recovery_salt as Buffer | null | undefined,
      codes: rows.map((row) => ({
        hash: row.hash as Buffer,
        usedAt: row.used_at === null ? null : Number(row.used_at),
      })),
    };
  },

  useRecoveryCode: async (accountId: string, hash: Buffer, now: number): Promise<boolean> =>
    (await db('recovery_codes')
      .where({ account_id: idBytes(accountId), hash, used_at: null })
      .update({ used_at: now })) === 1,

  replaceRecoveryCodes: (accountId: string, set: RecoverySet): Promise<void> =>
    db.transaction((trx) => writeRecovery(trx, idBytes(accountId), set)),
});

export type FactorStore = ReturnType<typeof createFactorStore>;

export const createFactorStore = (db: Database) => ({ ...setUp(db), ...prove(db) });

// The second factors of accounts in MySQL: seeds, steps and recovery codes.
import { type Act, newEntry } from '../accounts/acts.ts';
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { writeSecurityLog } from '../accounts/log-store.ts';
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { type Ending, endAccess } from './credential-store.ts';

type Row = Record<string, unknown>;

export type RecoverySet = { hashes: readonly Buffer[] };

const writeRecovery = async (
  trx: Database,
  account_id: Buffer,
  { hashes }: RecoverySet,
): Promise<void> => {
  await trx('recovery_codes').where({ account_id }).delete();
  await trx('recovery_codes').insert(hashes.map((hash) => ({ account_id, hash })));
  await trx('account_factors').where({ account_id }).update({ recovery_salt: null });
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
    given: RecoverySet & { sealed: string; step: number; now: number; act: Act },
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
        await writeSecurityLog(trx, [newEntry(accountId, given.act, { action: 'mfa_enabled' })]);
        await advanceEpoch(trx, accountId);
        return true;
      }),
    ),

  /**
   * Turns the factor off, ends what was opened with it, and writes what is told of it; false, and nothing changed,
   * when it was not on.
   */
  disable: (
    accountId: string,
    ending: Ending & { act: Act },
    told: readonly EventWire[] = [],
  ): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const id = idBytes(accountId);
        const standing = await lockAccount(trx, accountId);
        if (standing?.mfaEnabledAt == null) return false;
        await trx('accounts').where({ id }).update({ mfa_enabled_at: null });
        await trx('account_factors').where({ account_id: id }).delete();
        await trx('recovery_codes').where({ account_id: id }).delete();
        await writeSecurityLog(trx, [newEntry(accountId, ending.act, { action: 'mfa_disabled' })]);
        await insertNews(trx, told);
        await endAccess(trx, accountId, ending);
        return true;
      }),
    ),
});

const countLeft = async (db: Database, accountId: string): Promise<number> => {
  const unused = { account_id: idBytes(accountId), used_at: null };
  const [row] = await db('recovery_codes').where(unused).count({ left: '*' });
  return Number(row?.left ?? 0);
};

/** The use of a recovery code, and what is to be told when so many are left after it. */
export type RecoveryUse = {
  hash: Buffer;
  now: number;
  newsOfLeft(left: number): EventWire[];
};

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
    const confirmedAt = account?.mfa_enabled_at ?? null;
    return {
      confirmedAt: confirmedAt === null ? null : Number(confirmedAt),
      left: await countLeft(db, accountId),
    };
  },

  /** The codes of the present set; `salt` is that of a set kept as Argon2id, null of one kept as HMACs. */
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

  /**
   * Uses a code up and writes what `newsOfLeft` says of the number that is left; answers that, or undefined when the
   * code was used before.
   */
  useRecoveryCode: (
    accountId: string,
    { hash, now, newsOfLeft }: RecoveryUse,
  ): Promise<EventWire[] | undefined> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        await lockAccount(trx, accountId);
        const code = trx('recovery_codes').where({ account_id: idBytes(accountId), hash });
        if ((await code.where({ used_at: null }).update({ used_at: now })) === 0) return undefined;
        const told = newsOfLeft(await countLeft(trx, accountId));
        await insertNews(trx, told);
        return told;
      }),
    ),

  /** Puts a new set in the place of the present one; false, and nothing changed, when the factor is not on. */
  replaceRecoveryCodes: (accountId: string, set: RecoverySet & { act: Act }): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const standing = await lockAccount(trx, accountId);
        if (standing?.mfaEnabledAt == null) return false;
        await writeRecovery(trx, idBytes(accountId), set);
        const entry = newEntry(accountId, set.act, { action: 'recovery_codes_renewed' });
        await writeSecurityLog(trx, [entry]);
        return true;
      }),
    ),
});

export type FactorStore = ReturnType<typeof createFactorStore>;

export const createFactorStore = (db: Database) => ({ ...setUp(db), ...prove(db) });

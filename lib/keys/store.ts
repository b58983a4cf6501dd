// API keys in MySQL.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { accountFromRow, lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { KeyRecord, Principal } from './rules.ts';

type Row = Record<string, unknown>;

export type FoundKey = { principal: Principal; expiresAt: number | null; revokedAt: number | null };

const toFound = (row: Row): FoundKey => {
  const account = accountFromRow(row);
  return {
    principal: {
      accountId: account.id,
      keyId: idText(row.key_id as Buffer),
      mode: row.key_mode as Principal['mode'],
      account,
      ends: row.key_expires_at !== null,
    },
    expiresAt: row.key_expires_at === null ? null : Number(row.key_expires_at),
    revokedAt: row.key_revoked_at === null ? null : Number(row.key_revoked_at),
  };
};

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

const toRecord = (row: Row): KeyRecord => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  name: String(row.name),
  mode: row.mode as KeyRecord['mode'],
  prefix: String(row.prefix),
  last4: String(row.last4),
  createdAt: Number(row.created_at),
  expiresAt: numberOrNull(row.expires_at),
  revokedAt: numberOrNull(row.revoked_at),
  // Keys from before rotation existed began their own lines.
  familyId: idText((row.family_id ?? row.id) as Buffer),
  lastUsedAt: numberOrNull(row.last_used_at),
});

const insertKey = async (db: Database, key: KeyRecord, secretHash: Buffer): Promise<void> => {
  await db('api_keys').insert({
    id: idBytes(key.id),
    account_id: idBytes(key.accountId),
    name: key.name,
    mode: key.mode,
    secret_hash: secretHash,
    prefix: key.prefix,
    last4: key.last4,
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    revoked_at: key.revokedAt,
    family_id: idBytes(key.familyId),
    last_used_at: key.lastUsedAt,
  });
};

/** What may be done to the keys of one account while nobody else changes them. */
const within = (trx: Database, accountId: string) => ({
  insert: (key: KeyRecord, secretHash: Buffer) => insertKey(trx, key, secretHash),

  /** Keys of a mode that are not on their way out. */
  countLasting: async (mode: KeyRecord['mode']): Promise<number> => {
    const [row] = await trx('api_keys')
      .where({ account_id: idBytes(accountId), mode, revoked_at: null, expires_at: null })
      .count({ count: '*' });
    return Number(row?.count ?? 0);
  },

  /** The usable key with this id, or the newest live one; undefined when there is none. */
  findUsable: async (id: string | undefined, now: number): Promise<KeyRecord | undefined> => {
    const which = id === undefined ? { mode: 'live', expires_at: null } : { id: idBytes(id) };
    const row = await trx<Row>('api_keys')
      .where({ account_id: idBytes(accountId), revoked_at: null, ...which })
      .andWhere((query) => query.whereNull('expires_at').orWhere('expires_at', '>', now))
      .orderBy('id', 'desc')
      .first();
    return row === undefined ? undefined : toRecord(row);
  },

  /** Sets the end of a key's grace; the last change of its transaction. */
  expire: async (id: string, expiresAt: number): Promise<void> => {
    await trx('api_keys')
      .where({ id: idBytes(id) })
      .update({ expires_at: expiresAt });
    await advanceEpoch(trx, accountId);
  },
});

export type KeyStore = ReturnType<typeof createKeyStore>;

export const createKeyStore = (db: Database) => ({
  insert: (key: KeyRecord, secretHash: Buffer) => insertKey(db, key, secretHash),

  /** Changes the keys of an account one caller at a time: its row is locked meanwhile. */
  change: <T>(accountId: string, work: (keys: ReturnType<typeof within>) => Promise<T>) =>
    withLockRetry(() =>
      db.transaction(async (trx): Promise<T> => {
        await lockAccount(trx, accountId);
        return work(within(trx, accountId));
      }),
    ),

  /** Usable keys, and those that ended after `since` (ms); newest first. */
  list: async (accountId: string, since: number): Promise<KeyRecord[]> => {
    const rows = await db<Row>('api_keys')
      .where({ account_id: idBytes(accountId) })
      .andWhere((query) => query.whereNull('revoked_at').orWhere('revoked_at', '>', since))
      .andWhere((query) => query.whereNull('expires_at').orWhere('expires_at', '>', since))
      .orderBy('id', 'desc');
    return rows.map(toRecord);
  },

  /** Notes when keys were last used; an earlier time never replaces a later one. */
  noteUses: async (uses: readonly { id: string; at: number }[]): Promise<void> => {
    const rows = uses.map(() => 'SELECT ? AS id, ? AS used').join(' UNION ALL ');
    await db.raw(
      `UPDATE api_keys k JOIN (${rows}) u ON u.id = k.id
       SET k.last_used_at = GREATEST(COALESCE(k.last_used_at, 0), u.used)`,
      uses.flatMap(({ id, at }) => [idBytes(id), at]),
    );
  },

  /** The key with this hash and its account, whatever state they are in. */
  findBySecret: async (secretHash: Buffer): Promise<FoundKey | undefined> => {
    const row = await db<Row>('api_keys as k')
      .join('accounts as a', 'a.id', 'k.account_id')
      .where('k.secret_hash', secretHash)
      .first(
        'a.*',
        'k.id as key_id',
        'k.mode as key_mode',
        'k.expires_at as key_expires_at',
        'k.revoked_at as key_revoked_at',
      );
    return row === undefined ? undefined : toFound(row);
  },

  /** Ends a key of the account: ended before says that there is one, missing that there is none. */
  revoke: async (
    accountId: string,
    id: string,
    now: number,
  ): Promise<'ended' | 'ended before' | 'missing'> => {
    const own = { account_id: idBytes(accountId), id: idBytes(id) };
    const ended = await withLockRetry(() =>
      db.transaction(async (trx) => {
        const changed = await trx('api_keys')
          .where({ ...own, revoked_at: null })
          .andWhere((query) => query.whereNull('expires_at').orWhere('expires_at', '>', now))
          .update({ revoked_at: now });
        if (changed === 1) await advanceEpoch(trx, accountId);
        return changed === 1;
      }),
    );
    if (ended) return 'ended';
    return (await db('api_keys').where(own).first('id')) ? 'ended before' : 'missing';
  },
});

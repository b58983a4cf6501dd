// API keys in MySQL.
import type { Act, SecurityEntry } from '../accounts/acts.ts';
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { entriesOfKeys, writeSecurityLog } from '../accounts/log-store.ts';
import { accountFromRow } from '../accounts/row.ts';
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { fail } from '../kernel/errors.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { isUsable, type KeyRecord, type Principal } from './rules.ts';

/** Changes of a key that its revocation lists. */
const changesShown = 100;

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
  madeByKey: row.made_by_key === null ? null : idText(row.made_by_key as Buffer),
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
    made_by_key: key.madeByKey === null ? null : idBytes(key.madeByKey),
    last_used_at: key.lastUsedAt,
  });
};

/**
 * Refuses an act of a key that may not manage the account, or that ended since the call was let in; an act of anybody
 * else passes. Within a transaction that has locked the account, so that no act overtakes the end of its key.
 * @throws KEY_MANAGEMENT_DISABLED, INVALID_API_KEY
 */
export const requireActingKey = async (
  trx: Database,
  account: { id: string; keysManageAccount: boolean },
  { act, now }: { act: Pick<Act, 'by' | 'credentialId'>; now: number },
): Promise<void> => {
  if (act.by !== 'key') return;
  if (!account.keysManageAccount) throw fail('KEY_MANAGEMENT_DISABLED');
  const id = idBytes(act.credentialId ?? account.id);
  const row = await trx<Row>('api_keys')
    .where({ id, account_id: idBytes(account.id) })
    .first();
  if (row === undefined || !isUsable(toRecord(row), now)) throw fail('INVALID_API_KEY');
};

/** What may be done to the keys of one account while nobody else changes them. */
const within = (trx: Database, accountId: string) => ({
  /** All keys there ever were, the oldest first. */
  all: async (): Promise<KeyRecord[]> => {
    const rows = await trx<Row>('api_keys')
      .where({ account_id: idBytes(accountId) })
      .orderBy('id');
    return rows.map(toRecord);
  },

  /** Ends keys; the last change of its transaction but for `record`. */
  end: async (ids: readonly string[], now: number): Promise<void> => {
    await trx('api_keys').whereIn('id', ids.map(idBytes)).update({ revoked_at: now });
    await advanceEpoch(trx, accountId);
  },

  /** Writes the security log and the events of what is done. */
  record: async (
    entries: readonly SecurityEntry[],
    events: readonly EventWire[],
  ): Promise<void> => {
    await writeSecurityLog(trx, entries);
    await insertNews(trx, events);
  },

  /** What these keys changed since `since` (ms), the newest first. */
  changesOf: (keyIds: readonly string[], since: number): Promise<SecurityEntry[]> =>
    entriesOfKeys(trx, accountId, { keyIds, since, most: changesShown }),

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

export type WithinKeys = ReturnType<typeof within>;

export type KeyStore = ReturnType<typeof createKeyStore>;

export const createKeyStore = (db: Database) => ({
  insert: (key: KeyRecord, secretHash: Buffer) => insertKey(db, key, secretHash),

  /**
   * Changes the keys of an account one caller at a time: its row is locked meanwhile.
   * @throws NOT_FOUND (no such account), and see requireActingKey
   */
  change: <T>(
    accountId: string,
    given: { act: Act; now: number; work(keys: WithinKeys): Promise<T> },
  ): Promise<T> =>
    withLockRetry(() =>
      db.transaction(async (trx): Promise<T> => {
        const standing = await lockAccount(trx, accountId);
        if (!standing) throw fail('NOT_FOUND');
        const { keysManageAccount } = standing;
        await requireActingKey(trx, { id: accountId, keysManageAccount }, given);
        return given.work(within(trx, accountId));
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
});

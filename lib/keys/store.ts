// API keys in MySQL.
import { accountFromRow } from '../accounts/store.ts';
import type { Database } from '../infra/mysql.ts';
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
    },
    expiresAt: row.key_expires_at === null ? null : Number(row.key_expires_at),
    revokedAt: row.key_revoked_at === null ? null : Number(row.key_revoked_at),
  };
};

export type KeyStore = ReturnType<typeof createKeyStore>;

export const createKeyStore = (db: Database) => ({
  insert: async (key: KeyRecord, secretHash: Buffer): Promise<void> => {
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

  /** Answers false when the account has no such usable key. */
  revoke: async (accountId: string, id: string, now: number): Promise<boolean> => {
    const changed = await db('api_keys')
      .where({ account_id: idBytes(accountId), id: idBytes(id), revoked_at: null })
      .update({ revoked_at: now });
    return changed === 1;
  },
});

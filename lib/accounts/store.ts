// Accounts in MySQL.
import { type Database, isDuplicateKey, withLockRetry } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';
import { createChangeStore } from './change-store.ts';
import { advanceEpoch, changeKnown } from './epoch-store.ts';
import { accountFromRow, numberOrNull, type Row, textOrNull } from './row.ts';
import { type Account, emailKey, type SharedGrant } from './rules.ts';

export type Credentials = { account: Account; passwordHash: string };

const credentialsFromRow = (row: Row): Credentials => ({
  account: accountFromRow(row),
  passwordHash: String(row.password_hash),
});

/** What a proof of the owner rests on. */
export type Standing = Pick<Account, 'status' | 'mfaEnabledAt' | 'keysManageAccount'> & {
  passwordHash: string;
};

/**
 * Locks an account's row: changes of its password, its factors, its keys and its sessions come one after the other.
 * Undefined when there is no such account. First in every transaction that needs it, so that none waits in a circle.
 */
export const lockAccount = async (trx: Database, id: string): Promise<Standing | undefined> => {
  const row = await trx<Row>('accounts')
    .where({ id: idBytes(id) })
    .forUpdate()
    .first('status', 'mfa_enabled_at', 'password_hash', 'keys_manage_account');
  return (
    row && {
      status: row.status as Account['status'],
      mfaEnabledAt: numberOrNull(row.mfa_enabled_at),
      passwordHash: String(row.password_hash),
      keysManageAccount: Boolean(row.keys_manage_account),
    }
  );
};

/**
 * Gives an account another status, and says since when and why unless it is active. False, and nothing changed, when
 * it has that status already. Within a transaction that makes everybody forget what they remember.
 */
export const writeStatus = async (
  trx: Database,
  id: string,
  { status, at, reason }: StatusChange,
): Promise<boolean> => {
  const columns = { status, suspended_at: at ?? null, suspended_reason: reason ?? null };
  const account = trx('accounts').where({ id: idBytes(id) });
  return (await account.whereNot({ status }).update(columns)) === 1;
};

export type StatusChange = { status: Account['status']; at?: number; reason?: string };

/** Writes columns of an account that every process remembers. */
const writeColumns = (db: Database, id: string, columns: Row): Promise<void> =>
  changeKnown(db, id, async (trx) => {
    await trx('accounts')
      .where({ id: idBytes(id) })
      .update(columns);
  });

const readAndInsert = (db: Database) => ({
  /** Answers false when an account with this e-mail address exists. The secrets come sealed. */
  insert: async (
    account: Account,
    secrets: {
      passwordHash: string;
      webhookSecret: string;
      signupKeys: string | null;
      trialVerifications: number;
      sharedGrant: SharedGrant;
    },
  ): Promise<boolean> => {
    try {
      await db('accounts').insert({
        id: idBytes(account.id),
        email: account.email,
        email_key: emailKey(account.email),
        password_hash: secrets.passwordHash,
        webhook_secret: secrets.webhookSecret,
        signup_keys: secrets.signupKeys,
        trial_granted: secrets.trialVerifications,
        shared_unverified: secrets.sharedGrant.unverified,
        shared_per_verified: secrets.sharedGrant.perVerified,
        name: account.name,
        phone: account.phone,
        company: account.company,
        locale: account.locale,
        status: account.status,
        billing_plan: account.billingPlan,
        tier: account.tier.name,
        tier_per_minute: account.tier.perMinute,
        tier_expires_at: account.tier.expiresAt,
        created_at: account.createdAt,
      });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  },

  find: async (id: string): Promise<Account | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(id) })
      .first();
    return row === undefined ? undefined : accountFromRow(row);
  },

  findByEmail: async (email: string): Promise<Credentials | undefined> => {
    const row = await db<Row>('accounts')
      .where({ email_key: emailKey(email) })
      .first();
    return row === undefined ? undefined : credentialsFromRow(row);
  },

  /** The account and the hash of its password. */
  findCredentials: async (id: string): Promise<Credentials | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(id) })
      .first();
    return row === undefined ? undefined : credentialsFromRow(row);
  },
});

const write = (db: Database) => ({
  /** The sealed webhook secrets of an account, as they stand. */
  webhookSecrets: async (id: string) => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(id) })
      .first('webhook_secret', 'webhook_secret_before', 'webhook_secret_before_until');
    return {
      present: textOrNull(row?.webhook_secret ?? null),
      before: textOrNull(row?.webhook_secret_before ?? null),
      beforeUntil: numberOrNull(row?.webhook_secret_before_until ?? null),
    };
  },

  /** Puts the hash of the same password in the place of an older one; false when another one is there by now. */
  renewPasswordHash: async (id: string, before: string, renewed: string): Promise<boolean> =>
    (await db('accounts')
      .where({ id: idBytes(id), password_hash: before })
      .update({ password_hash: renewed })) === 1,

  setStatus: (id: string, status: Account['status']): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const changed = await writeStatus(trx, id, { status });
        if (changed) await advanceEpoch(trx, id);
        return changed;
      }),
    ),

  setTier: (id: string, { name, perMinute, expiresAt }: Account['tier']): Promise<void> =>
    writeColumns(db, id, { tier: name, tier_per_minute: perMinute, tier_expires_at: expiresAt }),
});

export type AccountStore = ReturnType<typeof createAccountStore>;

export const createAccountStore = (db: Database) => ({
  ...readAndInsert(db),
  ...write(db),
  ...createChangeStore(db),
});

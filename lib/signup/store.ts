// A new account with its first keys, in one transaction; and the one look at those keys.
import { type Act, newEntry } from '../accounts/acts.ts';
import { writeSecurityLog } from '../accounts/log-store.ts';
import type { Account, SharedGrant } from '../accounts/rules.ts';
import { createAccountStore } from '../accounts/store.ts';
import type { Database } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';
import type { KeyRecord } from '../keys/rules.ts';
import { createKeyStore, requireActingKey } from '../keys/store.ts';

export type NewAccount = {
  account: Account;
  passwordHash: string;
  /** Sealed. */
  webhookSecret: string;
  /** Sealed texts of the first keys; null when they are handed out at once. */
  signupKeys: string | null;
  trialVerifications: number;
  sharedGrant: SharedGrant;
  keys: readonly { record: KeyRecord; hash: Buffer }[];
};

class Taken extends Error {}

export type SignupStore = ReturnType<typeof createSignupStore>;

export const createSignupStore = (db: Database) => ({
  /** Answers false, with nothing made, when an account with this e-mail address exists. */
  insert: async (given: NewAccount): Promise<boolean> => {
    try {
      await db.transaction(async (trx) => {
        const { account, keys, ...secrets } = given;
        if (!(await createAccountStore(trx).insert(account, secrets))) throw new Taken();
        const store = createKeyStore(trx);
        for (const { record, hash } of keys) await store.insert(record, hash);
      });
      return true;
    } catch (error) {
      if (error instanceof Taken) return false;
      throw error;
    }
  },

  /**
   * The sealed first keys, for the first who asks; undefined ever after. Where a key asks, they count as made by it
   * from now on: it knows them, so they end with it. `hashesOf` answers what is stored of the keys in a sealed text.
   * @throws see requireActingKey
   */
  takeKeys: (
    accountId: string,
    { act, now, hashesOf }: { act: Act; now: number; hashesOf(sealed: string): Buffer[] },
  ): Promise<string | undefined> =>
    db.transaction(async (trx) => {
      const id = idBytes(accountId);
      const row = await trx<Record<string, unknown>>('accounts')
        .where({ id })
        .forUpdate()
        .first('signup_keys', 'keys_manage_account');
      const keysManageAccount = Boolean(row?.keys_manage_account);
      await requireActingKey(trx, { id: accountId, keysManageAccount }, { act, now });
      const sealed = row?.signup_keys;
      if (typeof sealed !== 'string') return undefined;
      if (act.by === 'key' && act.credentialId !== null) {
        const maker = idBytes(act.credentialId);
        await trx('api_keys')
          .where({ account_id: id })
          .whereIn('secret_hash', hashesOf(sealed))
          .whereNot({ id: maker })
          .update({ made_by_key: maker });
      }
      await trx('accounts').where({ id }).update({ signup_keys: null });
      await writeSecurityLog(trx, [newEntry(accountId, act, { action: 'first_keys_shown' })]);
      return sealed;
    }),
});

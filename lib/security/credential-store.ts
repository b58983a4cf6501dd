// What every session of an account rests on, in MySQL: its end and the end of those sessions are one step.
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';
import { endSessions } from '../sessions/store.ts';

/** What goes: `except` is the id of the session that acts. */
export type Ending = { now: number; except?: string | undefined; reason: string };

/** Ends sessions and logins that wait for a second factor; within a transaction that has locked the account. */
export const endAccess = async (
  trx: Database,
  accountId: string,
  ending: Ending,
): Promise<number> => {
  await trx('mfa_challenges')
    .where({ account_id: idBytes(accountId) })
    .delete();
  return endSessions(trx, accountId, ending);
};

export type CredentialStore = ReturnType<typeof createCredentialStore>;

export const createCredentialStore = (db: Database) => ({
  /**
   * Sets the hash of a new password and ends everything that was opened with another one. False, and nothing
   * changed, when `present` is not the account's hash any more.
   */
  replacePassword: (
    accountId: string,
    given: Ending & { hash: string; present?: string | undefined },
  ): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const standing = await lockAccount(trx, accountId);
        if (!standing) return false;
        if (given.present !== undefined && given.present !== standing.passwordHash) return false;
        await trx('accounts')
          .where({ id: idBytes(accountId) })
          .update({ password_hash: given.hash });
        await endAccess(trx, accountId, given);
        return true;
      }),
    ),

  /** Ends all sessions of the account and its logins under way; answers how many sessions. */
  endAll: (accountId: string, ending: Ending): Promise<number> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        await lockAccount(trx, accountId);
        return endAccess(trx, accountId, ending);
      }),
    ),
});

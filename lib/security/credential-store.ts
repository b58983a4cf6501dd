// What every session of an account rests on, in MySQL: its end and the end of those sessions are one step.
import { type Act, newEntry, securityEvent } from '../accounts/acts.ts';
import { writeSecurityLog } from '../accounts/log-store.ts';
import { lockAccount, writeStatus } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes } from '../kernel/ids.ts';
import { requireActingKey } from '../keys/store.ts';
import { insertNews } from '../messages/news-store.ts';
import { endSessions } from '../sessions/store.ts';

/** What goes: `except` is the id of the session that acts. */
export type Ending = { now: number; except?: string | undefined; reason: string };

/** Ends sessions and logins that wait for a second factor; last in a transaction that has locked the account. */
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
   * Sets the hash of a new password and ends everything that was opened with another one; answers the events that
   * tell of it. Undefined, and nothing changed, when `present` is not the account's hash any more.
   * @throws see requireActingKey
   */
  replacePassword: (
    accountId: string,
    given: Ending & { hash: string; present?: string | undefined; act: Act },
  ): Promise<EventWire[] | undefined> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const standing = await lockAccount(trx, accountId);
        if (!standing) return undefined;
        const { present } = given;
        if (present !== undefined && present !== standing.passwordHash) return undefined;
        const { keysManageAccount } = standing;
        await requireActingKey(trx, { id: accountId, keysManageAccount }, given);
        await trx('accounts')
          .where({ id: idBytes(accountId) })
          .update({ password_hash: given.hash });
        const entry = newEntry(accountId, given.act, { action: 'password_changed' });
        await writeSecurityLog(trx, [entry]);
        const event = securityEvent('security.password_changed', entry, {
          at: given.now,
          data: {},
        });
        await insertNews(trx, [event]);
        await endAccess(trx, accountId, given);
        return [event];
      }),
    ),

  /**
   * Suspends the account, ends all that was opened of it, and writes what it is told: one step. Undefined when there
   * is no such account; false, and nothing told, when it was suspended before.
   */
  suspend: (
    accountId: string,
    { now: at, reason, told }: { now: number; reason: string; told: readonly EventWire[] },
  ): Promise<boolean | undefined> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        if (!(await lockAccount(trx, accountId))) return undefined;
        const changed = await writeStatus(trx, accountId, { status: 'suspended', at, reason });
        if (changed) await insertNews(trx, told);
        await endAccess(trx, accountId, { now: at, reason: 'forced' });
        return changed;
      }),
    ),

  /** Ends all sessions of the account and its logins under way, as `act` says; answers how many sessions. */
  endAll: (accountId: string, ending: Ending, act: Act): Promise<number> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        await lockAccount(trx, accountId);
        await writeSecurityLog(trx, [newEntry(accountId, act, { action: 'sessions_ended' })]);
        return endAccess(trx, accountId, ending);
      }),
    ),
});

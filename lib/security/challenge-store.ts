// Logins that wait for a second factor, in MySQL.

import { accountFromRow } from '../accounts/row.ts';
import type { Account } from '../accounts/rules.ts';
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes } from '../kernel/ids.ts';
import type { Visitor } from '../sessions/open.ts';

type Row = Record<string, unknown>;

export type OpenChallenge = {
  account: Account;
  /** Codes tried with this token, the present one included. */
  attempts: number;
  visitor: Visitor;
  expiresAt: number;
};

const userAgentMax = 200;

export type ChallengeStore = ReturnType<typeof createChallengeStore>;

export const createChallengeStore = (db: Database) => ({
  /** Adds a login whose password was right; false when its hash is not `passwordHash` any more. */
  addChallenge: (
    hash: Buffer,
    given: Visitor & { accountId: string; passwordHash: string; expiresAt: number },
  ): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const standing = await lockAccount(trx, given.accountId);
        if (standing?.passwordHash !== given.passwordHash) return false;
        await trx('mfa_challenges').insert({
          hash,
          account_id: idBytes(given.accountId),
          ip: given.ip,
          user_agent: given.userAgent.slice(0, userAgentMax),
          source: given.source,
          expires_at: given.expiresAt,
        });
        return true;
      }),
    ),

  /** Counts a code tried with a token; undefined when the token is unknown, used or too old. */
  takeChallenge: async (hash: Buffer, now: number): Promise<OpenChallenge | undefined> => {
    const open = db('mfa_challenges').where({ hash, used_at: null }).where('expires_at', '>', now);
    if ((await open.increment('attempts')) === 0) return undefined;
    const row = await db<Row>('mfa_challenges as c')
      .join('accounts as a', 'a.id', 'c.account_id')
      .where('c.hash', hash)
      .first('a.*', 'c.attempts', 'c.ip', 'c.user_agent', 'c.source', 'c.expires_at');
    if (row === undefined) return undefined;
    return {
      account: accountFromRow(row),
      attempts: Number(row.attempts),
      visitor: {
        ip: String(row.ip),
        userAgent: String(row.user_agent),
        source: String(row.source),
      },
      expiresAt: Number(row.expires_at),
    };
  },

  /** A code that was never looked at counts for nothing. */
  giveBackChallenge: async (hash: Buffer): Promise<void> => {
    await db('mfa_challenges').where({ hash }).where('attempts', '>', 0).decrement('attempts');
  },

  /** Deletes at most `most` that nobody can answer any more; answers how many. */
  purgeChallenges: async (now: number, most: number): Promise<number> =>
    Number(await db('mfa_challenges').where('expires_at', '<', now).limit(most).delete()),
});

/**
 * Uses the token up as its session is written; false when another call did, or the password or the factor that it
 * stood for is gone.
 */
export const endChallenge = async (trx: Database, hash: Buffer, now: number): Promise<boolean> =>
  (await trx('mfa_challenges').where({ hash, used_at: null }).update({ used_at: now })) === 1;

// Known sources: the addresses from which the owner of an account proved who they are, in MySQL.
import { createHmac } from 'node:crypto';
import { emailKey } from '../accounts/rules.ts';
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { NamedKey } from '../kernel/secrets.ts';
import { knownSourceMs, knownSourcesMax } from './rules.ts';

type Row = Record<string, unknown>;

export type SourceStore = ReturnType<typeof createSourceStore>;

/**
 * Notes that the owner acted from a source, within a transaction that has locked the account. `loggedIn`: with a
 * session, not only by signing up or resetting the password. Answers whether the source was known before, by whichever
 * of these.
 */
export const rememberSource = async (
  trx: Database,
  account: { id: string; source: Buffer },
  { now, loggedIn }: { now: number; loggedIn: boolean },
): Promise<boolean> => {
  const own = { account_id: idBytes(account.id) };
  const row = await trx<Row>('known_sources')
    .where({ account_id: own.account_id, source: account.source })
    .first('logged_in', 'last_used_at');
  const before = row !== undefined && Number(row.last_used_at) > now - knownSourceMs;
  const knownToLogins = before && Boolean(row.logged_in);
  const columns = { logged_in: knownToLogins || loggedIn, last_used_at: now };
  await trx('known_sources')
    .insert({ account_id: own.account_id, source: account.source, ...columns })
    .onConflict()
    .merge(columns);
  if (row === undefined) await dropSurplus(trx, own);
  return before;
};

const dropSurplus = async (trx: Database, own: { account_id: Buffer }): Promise<void> => {
  const rows = await trx<Row>('known_sources')
    .where(own)
    .orderBy('last_used_at', 'desc')
    .select('source');
  const surplus = rows.slice(knownSourcesMax).map(({ source }) => source as Buffer);
  if (surplus.length > 0) {
    await trx('known_sources').where(own).whereIn('source', surplus).delete();
  }
};

/**
 * Known sources under `key`. A source is the opaque name that a visitor has (api/source.ts); it is kept as an HMAC
 * over account and source, so the table neither shows an address nor tells that two accounts share one.
 */
export const createSourceStore = (db: Database, key: NamedKey) => {
  /** The keyed hash of a source, another one for each account. */
  const nameOf = (accountId: string, source: string): Buffer =>
    createHmac('sha256', key.key).update(`known-source\n${accountId}\n${source}`).digest();

  const find = (accountId: string, source: string, now: number) =>
    db<Row>('known_sources')
      .where({ account_id: idBytes(accountId), source: nameOf(accountId, source) })
      .where('last_used_at', '>', now - knownSourceMs);

  return {
    nameOf,

    /** Whether a session of the account was opened from the source in the last 90 days. */
    isKnown: async (accountId: string, source: string, now: number): Promise<boolean> =>
      (await find(accountId, source, now).where({ logged_in: true }).first('source')) !== undefined,

    /**
     * Whether the owner of the account with this e-mail address logged in, signed up or reset the password from the
     * source in the last 90 days. False for an address without an account, after the same query.
     */
    isTrusted: async (email: string, source: string, now: number): Promise<boolean> => {
      const rows = await db<Row>('accounts as a')
        .join('known_sources as k', 'k.account_id', 'a.id')
        .where('a.email_key', emailKey(email))
        .where('k.last_used_at', '>', now - knownSourceMs)
        .select('a.id', 'k.source');
      return rows.some((row) =>
        nameOf(idText(row.id as Buffer), source).equals(row.source as Buffer),
      );
    },

    /** Notes that the owner proved from a source who they are, without a session: by signing up or a reset. */
    remember: (accountId: string, source: string, now: number): Promise<void> =>
      withLockRetry(() =>
        db.transaction(async (trx) => {
          if (!(await lockAccount(trx, accountId))) return;
          const account = { id: accountId, source: nameOf(accountId, source) };
          await rememberSource(trx, account, { now, loggedIn: false });
        }),
      ),

    /** Deletes at most `most` that were not used for 90 days; answers how many. */
    purgeSources: async (now: number, most: number): Promise<number> =>
      Number(
        await db('known_sources')
          .where('last_used_at', '<=', now - knownSourceMs)
          .limit(most)
          .delete(),
      ),
  };
};

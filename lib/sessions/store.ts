// Sessions and their tokens in MySQL.
import { newEntry, type SecurityEntry, securityEvent } from '../accounts/acts.ts';
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { writeSecurityLog } from '../accounts/log-store.ts';
import { lockAccount, type Standing } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { createPurge } from './purge-store.ts';
import { addTokens, createRefresh, type NewToken } from './refresh-store.ts';
import { foundFromRow, sessionColumns, sessionFromRow } from './row-store.ts';
import { endedKeptMs, type FoundSession, reused, reusedKeptMs, type Session } from './rules.ts';
import { rememberSource } from './source-store.ts';

type Row = Record<string, unknown>;

/**
 * Whether what was proven of the account still stands when the session is written: what it rests on may have changed
 * while a hash was made. Runs while nobody else can change password, factors or sessions.
 */
export type Still = (standing: Standing, trx: Database) => boolean | Promise<boolean>;

/**
 * written: and so many others went to make room, with the events that tell of it; suspended, changed: nothing was
 * written.
 */
export type Inserted =
  | { kind: 'written'; gone: number; told: EventWire[] }
  | { kind: 'suspended' }
  | { kind: 'changed' };

const insertRow = async (trx: Database, session: Session): Promise<void> => {
  await trx('sessions').insert({
    id: idBytes(session.id),
    account_id: idBytes(session.accountId),
    created_at: session.createdAt,
    last_used_at: session.lastUsedAt,
    ip: session.ip,
    user_agent: session.userAgent,
    mfa: session.mfa,
    proven_at: session.provenAt,
    generation: 1,
    ends_at: session.endsAt,
    idle_ends_at: session.idleEndsAt,
    purge_at: session.idleEndsAt + endedKeptMs,
  });
};

const openOf = (db: Database, accountId: string, now: number) =>
  db<Row>('sessions')
    .where({ account_id: idBytes(accountId), revoked_at: null })
    .where('idle_ends_at', '>', now);

const ending = (now: number, reason: string) => ({
  revoked_at: now,
  revoked_reason: reason,
  purge_at: now + (reason === reused ? reusedKeptMs : endedKeptMs),
});

// Of the account's open sessions those used last stay; the new one is among them.
const endSurplus = async (trx: Database, session: Session, keep: number): Promise<number> => {
  const open = await openOf(trx, session.accountId, session.createdAt)
    .whereNot({ id: idBytes(session.id) })
    .orderBy([
      { column: 'last_used_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .select('id');
  const surplus = open.slice(keep - 1).map(({ id }) => id as Buffer);
  if (surplus.length === 0) return 0;
  await trx('sessions').whereIn('id', surplus).update(ending(session.createdAt, 'too_many'));
  await advanceEpoch(trx, session.accountId);
  return surplus.length;
};

/**
 * Ends the open sessions of an account but `except`, last in a transaction that has locked it; answers how many.
 * Everybody forgets what they remember of the account, too.
 */
export const endSessions = async (
  trx: Database,
  accountId: string,
  { now, except, reason }: { now: number; except?: string | undefined; reason: string },
): Promise<number> => {
  const open = openOf(trx, accountId, now);
  if (except !== undefined) open.whereNot({ id: idBytes(except) });
  const ended = Number(await open.update(ending(now, reason)));
  await advanceEpoch(trx, accountId);
  return ended;
};

/** Writes a login into the security log, and the event of one from a source that was not known; answers the event. */
const recordLogin = async (
  trx: Database,
  session: Session,
  known: boolean,
): Promise<EventWire[]> => {
  const act = { by: 'session', credentialId: session.id, ip: session.ip, requestId: null } as const;
  const entry = newEntry(session.accountId, act, { action: 'login', subjectId: session.id });
  await writeSecurityLog(trx, [entry]);
  if (known) return [];
  const data = { session_id: session.id, mfa: session.mfa, user_agent: session.userAgent };
  const event = securityEvent('security.login', entry, { at: session.createdAt, data });
  await insertNews(trx, [event]);
  return [event];
};

const insertAndFind = (db: Database) => ({
  /**
   * Adds a session if `still` holds; of the account's open ones only the `keep` used last stay. `source` is the keyed
   * hash of where it is opened from, which is known to the account from now on.
   */
  insert: (
    session: Session,
    tokens: readonly NewToken[],
    {
      keep,
      still = () => true,
      source,
    }: { keep: number; still?: Still | undefined; source: Buffer },
  ): Promise<Inserted> =>
    withLockRetry(() =>
      db.transaction(async (trx): Promise<Inserted> => {
        const standing = await lockAccount(trx, session.accountId);
        if (!standing || !(await still(standing, trx))) return { kind: 'changed' };
        if (standing.status !== 'active') return { kind: 'suspended' };
        await insertRow(trx, session);
        await addTokens(trx, { id: session.id, generation: 1 }, tokens);
        const gone = await endSurplus(trx, session, keep);
        const account = { id: session.accountId, source };
        const seen = { now: session.createdAt, loggedIn: true };
        const known = await rememberSource(trx, account, seen);
        return { kind: 'written', gone, told: await recordLogin(trx, session, known) };
      }),
    ),

  /** The session an access token opens, with its account, whatever state they are in. */
  findByAccess: async (hash: Buffer): Promise<FoundSession | undefined> => {
    const row = await db<Row>('session_tokens as t')
      .join('sessions as s', 's.id', 't.session_id')
      .join('accounts as a', 'a.id', 's.account_id')
      .where({ 't.hash': hash, 't.kind': 'access' })
      .first('a.*', ...sessionColumns, 't.expires_at as token_expires_at');
    return row === undefined ? undefined : foundFromRow(row);
  },

  /** Open sessions of an account, and those that a stolen token ended lately; newest first. */
  list: async (
    accountId: string,
    now: number,
  ): Promise<{ session: Session; reusedAt: number | null }[]> => {
    const rows = await db<Row>('sessions as s')
      .where({ 's.account_id': idBytes(accountId) })
      .andWhere((one) =>
        one
          .where((open) => open.whereNull('s.revoked_at').where('s.idle_ends_at', '>', now))
          .orWhere((stolen) =>
            stolen.where('s.revoked_reason', reused).where('s.revoked_at', '>', now - reusedKeptMs),
          ),
      )
      .orderBy('s.id', 'desc')
      .select(...sessionColumns);
    return rows.map((row) => ({
      session: sessionFromRow(row),
      reusedAt: row.revoked_at === null ? null : Number(row.revoked_at),
    }));
  },
});

const change = (db: Database) => ({
  /** Ends one session of the account: ended before says that there is one, missing that there is none. */
  revoke: (
    accountId: string,
    id: string,
    now: number,
    { reason, entry }: { reason: string; entry?: SecurityEntry },
  ): Promise<'ended' | 'ended before' | 'missing'> =>
    withLockRetry(async () => {
      const own = { account_id: idBytes(accountId), id: idBytes(id) };
      const ended = await db.transaction(async (trx) => {
        const open = openOf(trx, accountId, now).where({ id: own.id });
        if ((await open.update(ending(now, reason))) === 0) return false;
        if (entry) await writeSecurityLog(trx, [entry]);
        await advanceEpoch(trx, accountId);
        return true;
      });
      if (ended) return 'ended';
      return (await db('sessions').where(own).first('id')) ? 'ended before' : 'missing';
    }),

  /** Ends all open sessions of the account but `except`; answers how many. */
  revokeAll: (
    accountId: string,
    now: number,
    {
      except,
      reason,
      entry,
    }: { except?: string | undefined; reason: string; entry?: SecurityEntry },
  ): Promise<number> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        await lockAccount(trx, accountId);
        if (entry) await writeSecurityLog(trx, [entry]);
        return endSessions(trx, accountId, { now, except, reason });
      }),
    ),

  touch: async (id: string, now: number): Promise<void> => {
    await db('sessions')
      .where({ id: idBytes(id) })
      .where('last_used_at', '<', now)
      .update({ last_used_at: now });
  },

  setProven: async (id: string, now: number): Promise<void> => {
    await db('sessions')
      .where({ id: idBytes(id) })
      .update({ proven_at: now });
  },
});

export type SessionStore = ReturnType<typeof createSessionStore>;

export const createSessionStore = (db: Database) => ({
  ...insertAndFind(db),
  ...change(db),
  ...createRefresh(db),
  ...createPurge(db),
});

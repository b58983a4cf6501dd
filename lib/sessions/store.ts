// Sessions and their tokens in MySQL.
import { accountFromRow } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { FoundSession, RefreshToken, Session } from './rules.ts';

type Row = Record<string, unknown>;

export type NewToken = { hash: Buffer; kind: 'access' | 'refresh'; expiresAt: number };

export type FoundRefresh = FoundSession & { generation: number; token: RefreshToken };

const sessionFromRow = (row: Row): Session => ({
  id: idText(row.session_id as Buffer),
  accountId: idText(row.account_id as Buffer),
  createdAt: Number(row.session_created_at),
  lastUsedAt: Number(row.last_used_at),
  ip: String(row.ip),
  userAgent: String(row.user_agent),
  mfa: Boolean(row.mfa),
  provenAt: Number(row.proven_at),
  endsAt: Number(row.ends_at),
});

const sessionColumns = [
  's.id as session_id',
  's.account_id',
  's.created_at as session_created_at',
  ...['last_used_at', 'ip', 'user_agent', 'mfa', 'proven_at', 'ends_at', 'revoked_at'].map(
    (name) => `s.${name}`,
  ),
  's.generation as session_generation',
];

const foundFromRow = (row: Row): FoundSession => ({
  session: sessionFromRow(row),
  account: accountFromRow(row),
  expiresAt: Number(row.token_expires_at),
  revokedAt: row.revoked_at === null ? null : Number(row.revoked_at),
});

const addTokens = (
  trx: Database,
  session: { id: string; generation: number },
  tokens: readonly NewToken[],
) =>
  trx('session_tokens').insert(
    tokens.map(({ hash, kind, expiresAt }) => ({
      ...{ hash, kind, expires_at: expiresAt },
      session_id: idBytes(session.id),
      generation: session.generation,
    })),
  );

/** What a presented refresh token leads to: tokens of the next generation, tokens beside the present ones, an end. */
export type RefreshEffect = { issue?: readonly NewToken[]; sibling?: boolean; revoke?: string };

const insertSession = async (trx: Database, session: Session): Promise<void> => {
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
  });
};

// Of the account's open sessions only the newest stay.
const endSurplus = async (trx: Database, session: Session, keep: number): Promise<number> => {
  const open = await trx<Row>('sessions')
    .where({ account_id: idBytes(session.accountId), revoked_at: null })
    .where('ends_at', '>', session.createdAt)
    .orderBy('id', 'desc')
    .select('id');
  const surplus = open.slice(keep).map(({ id }) => id as Buffer);
  if (surplus.length === 0) return 0;
  await trx('sessions')
    .whereIn('id', surplus)
    .update({ revoked_at: session.createdAt, revoked_reason: 'too_many' });
  return surplus.length;
};

const lockRefresh = async (trx: Database, hash: Buffer): Promise<FoundRefresh | undefined> => {
  const row = await trx<Row>('session_tokens as t')
    .join('sessions as s', 's.id', 't.session_id')
    .join('accounts as a', 'a.id', 's.account_id')
    .where({ 't.hash': hash, 't.kind': 'refresh' })
    .forUpdate()
    .first(
      ...['a.*', ...sessionColumns, 't.expires_at as token_expires_at'],
      ...['t.generation as token_generation', 't.used_at', 't.uses'],
    );
  if (row === undefined) return undefined;
  return {
    ...foundFromRow(row),
    generation: Number(row.session_generation),
    token: {
      generation: Number(row.token_generation),
      usedAt: row.used_at === null ? null : Number(row.used_at),
      uses: Number(row.uses),
    },
  };
};

const endWithin = (trx: Database, id: Buffer, now: number, reason: string) =>
  trx('sessions')
    .where({ id, revoked_at: null })
    .update({ revoked_at: now, revoked_reason: reason });

const rotate = async (
  trx: Database,
  found: FoundRefresh,
  given: { hash: Buffer; now: number; issue: readonly NewToken[]; sibling: boolean },
): Promise<void> => {
  const { hash, now, issue, sibling } = given;
  const id = idBytes(found.session.id);
  const generation = sibling ? found.generation : found.generation + 1;
  await trx('session_tokens')
    .where({ hash })
    .update({ used_at: found.token.usedAt ?? now, uses: found.token.uses + 1 });
  await trx('sessions').where({ id }).update({ generation, last_used_at: now });
  await trx('session_tokens').where({ session_id: id }).where('expires_at', '<', now).delete();
  await addTokens(trx, { id: found.session.id, generation }, issue);
};

const insertAndFind = (db: Database) => ({
  /** Adds a session; of the account's open ones only the newest `keep` stay. Answers how many went. */
  insert: (session: Session, tokens: readonly NewToken[], keep: number): Promise<number> =>
    db.transaction(async (trx) => {
      await insertSession(trx, session);
      await addTokens(trx, { id: session.id, generation: 1 }, tokens);
      return endSurplus(trx, session, keep);
    }),

  /** The session an access token opens, with its account, whatever state they are in. */
  findByAccess: async (hash: Buffer): Promise<FoundSession | undefined> => {
    const row = await db<Row>('session_tokens as t')
      .join('sessions as s', 's.id', 't.session_id')
      .join('accounts as a', 'a.id', 's.account_id')
      .where({ 't.hash': hash, 't.kind': 'access' })
      .first('a.*', ...sessionColumns, 't.expires_at as token_expires_at');
    return row === undefined ? undefined : foundFromRow(row);
  },

  /** Runs `decide` on the session of a refresh token while nobody else can, and writes what it returns. */
  refresh: (
    hash: Buffer,
    now: number,
    decide: (found: FoundRefresh | undefined) => RefreshEffect,
  ): Promise<void> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const found = await lockRefresh(trx, hash);
        const { issue, sibling = false, revoke } = decide(found);
        if (!found) return;
        if (revoke !== undefined) await endWithin(trx, idBytes(found.session.id), now, revoke);
        if (issue) await rotate(trx, found, { hash, now, issue, sibling });
      }),
    ),

  /** Open sessions of an account, newest first. */
  list: async (accountId: string, now: number): Promise<Session[]> => {
    const rows = await db<Row>('sessions as s')
      .where({ 's.account_id': idBytes(accountId), 's.revoked_at': null })
      .where('s.ends_at', '>', now)
      .orderBy('s.id', 'desc')
      .select(...sessionColumns);
    return rows.map(sessionFromRow);
  },
});

const change = (db: Database) => ({
  /** Ends one open session of the account; false when it has no such session. */
  revoke: async (accountId: string, id: string, now: number, reason: string): Promise<boolean> => {
    const changed = await db('sessions')
      .where({ account_id: idBytes(accountId), id: idBytes(id), revoked_at: null })
      .update({ revoked_at: now, revoked_reason: reason });
    return changed === 1;
  },

  /** Ends all open sessions of the account but `except`; answers how many. */
  revokeAll: async (
    accountId: string,
    now: number,
    { except, reason }: { except?: string | undefined; reason: string },
  ): Promise<number> => {
    const open = db('sessions').where({ account_id: idBytes(accountId), revoked_at: null });
    if (except !== undefined) open.whereNot({ id: idBytes(except) });
    return Number(await open.update({ revoked_at: now, revoked_reason: reason }));
  },

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

export const createSessionStore = (db: Database) => ({ ...insertAndFind(db), ...change(db) });

// Refresh tokens in MySQL: what one leads to is decided and written while nobody else can use another.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import { lockAccount } from '../accounts/store.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { foundFromRow, sessionColumns } from './row-store.ts';
import {
  endedKeptMs,
  type FoundSession,
  generationsKept,
  type Line,
  type RefreshToken,
  refreshEnd,
  reusedKeptMs,
} from './rules.ts';

type Row = Record<string, unknown>;

export type NewToken = { hash: Buffer; kind: 'access' | 'refresh'; expiresAt: number };

export type FoundRefresh = FoundSession & { line: Line; token: RefreshToken };

/** What a presented refresh token leads to: tokens of the next generation, tokens beside the present ones, an end. */
export type RefreshEffect =
  | { kind: 'nothing' }
  | { kind: 'rotate'; issue: readonly NewToken[] }
  | { kind: 'fork'; issue: readonly NewToken[]; forkedAt: number }
  | { kind: 'revoke'; reason: string };

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));

/** Stores new tokens of a session. */
export const addTokens = async (
  trx: Database,
  session: { id: string; generation: number },
  tokens: readonly NewToken[],
): Promise<void> => {
  await trx('session_tokens').insert(
    tokens.map(({ hash, kind, expiresAt }) => ({
      ...{ hash, kind, expires_at: expiresAt },
      session_id: idBytes(session.id),
      generation: session.generation,
    })),
  );
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
    line: { generation: Number(row.session_generation), forkedAt: numberOrNull(row.forked_at) },
    token: {
      generation: Number(row.token_generation),
      usedAt: numberOrNull(row.used_at),
      uses: Number(row.uses),
    },
  };
};

const issue = async (
  trx: Database,
  found: FoundRefresh,
  given: { hash: Buffer; now: number; effect: RefreshEffect & { kind: 'rotate' | 'fork' } },
): Promise<void> => {
  const { hash, now, effect } = given;
  const { token, line, session } = found;
  const id = idBytes(session.id);
  const generation = effect.kind === 'fork' ? line.generation : line.generation + 1;
  const idleEndsAt = refreshEnd(session, now);
  await trx('session_tokens')
    .where({ hash })
    .update({ used_at: token.usedAt ?? now, uses: token.uses + 1 });
  await trx('sessions')
    .where({ id })
    .update({
      ...{ generation, last_used_at: now, idle_ends_at: idleEndsAt },
      purge_at: idleEndsAt + endedKeptMs,
      ...(effect.kind === 'fork' ? { forked_at: effect.forkedAt } : {}),
    });
  // Access tokens of earlier generations end here; refresh tokens stay, to be known when they come again. Bounded
  // whatever a client does: access tokens by their life, refresh tokens by their number.
  await trx('session_tokens')
    .where({ session_id: id })
    .andWhere((old) =>
      old
        .where('expires_at', '<', now)
        .orWhere('generation', '<', generation - generationsKept)
        .orWhere((access) => access.where({ kind: 'access' }).where('generation', '<', generation)),
    )
    .delete();
  // What processes remember of the older access tokens is void.
  if (effect.kind === 'rotate') await advanceEpoch(trx, session.accountId);
  await addTokens(trx, { id: session.id, generation }, effect.issue);
};

export const createRefresh = (db: Database) => ({
  /** The session a refresh token is of, and its account, whatever state they are in; locks nothing. */
  findByRefresh: async (
    hash: Buffer,
  ): Promise<{ sessionId: string; accountId: string } | undefined> => {
    const row = await db<Row>('session_tokens as t')
      .join('sessions as s', 's.id', 't.session_id')
      .where({ 't.hash': hash, 't.kind': 'refresh' })
      .first('s.id', 's.account_id');
    if (row === undefined) return undefined;
    return { sessionId: idText(row.id as Buffer), accountId: idText(row.account_id as Buffer) };
  },

  /** Runs `decide` on the session of a refresh token while nobody else can, and writes what it returns. */
  refresh: (
    accountId: string,
    hash: Buffer,
    { now, decide }: { now: number; decide(found: FoundRefresh | undefined): RefreshEffect },
  ): Promise<void> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        await lockAccount(trx, accountId);
        const found = await lockRefresh(trx, hash);
        const effect = decide(found);
        if (!found || effect.kind === 'nothing') return;
        if (effect.kind !== 'revoke') return issue(trx, found, { hash, now, effect });
        await trx('sessions')
          .where({ id: idBytes(found.session.id), revoked_at: null })
          .update({
            revoked_at: now,
            revoked_reason: effect.reason,
            purge_at: now + reusedKeptMs,
          });
        await advanceEpoch(trx, accountId);
      }),
    ),
});

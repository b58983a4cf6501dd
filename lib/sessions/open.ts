// Opening a session, refreshing it, and ending it.
import type { Account } from '../accounts/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { type ErrorCode, fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import { type ReadLimiter, takeRead } from '../limits/reads.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { FoundRefresh, NewToken, RefreshEffect } from './refresh-store.ts';
import {
  accessEnd,
  accessLifeMs,
  isForked,
  judgeRefresh,
  refreshEnd,
  reused,
  type Session,
  sessionLifeMs,
  sessionsMax,
} from './rules.ts';
import type { SourceStore } from './source-store.ts';
import type { SessionStore, Still } from './store.ts';
import { isToken, newTokenPair, type TokenPair, tokenHash } from './tokens.ts';

export type SessionDeps = {
  sessions: SessionStore;
  sources: Pick<SourceStore, 'nameOf' | 'isTrusted'>;
  revocations: Pick<Revocations, 'announce'>;
  news: NewsStore;
  announcer: Announcer;
  clock: Clock;
  log: Log;
};

export type Opened = { tokens: TokenPair; expiresInSeconds: number; account: Account };

/** Where a session is opened from; `source` is the opaque name of the address (api/source.ts). */
export type Visitor = { ip: string; userAgent: string; source: string };

/** What a session rests on: checked once more as it is written, else `otherwise` is thrown. */
export type Ground = { still: Still; otherwise: ErrorCode };

const userAgentMax = 200;

const tokensOf = (pair: TokenPair, session: Pick<Session, 'endsAt'>, now: number): NewToken[] => [
  { hash: tokenHash(pair.access), kind: 'access', expiresAt: accessEnd(session, now) },
  { hash: tokenHash(pair.refresh), kind: 'refresh', expiresAt: refreshEnd(session, now) },
];

const opened = (tokens: TokenPair, account: Account): Opened => ({
  ...{ tokens, account },
  expiresInSeconds: accessLifeMs / 1000,
});

/**
 * Opens a session for an account that has proven who it is; `mfa` says whether with a second factor.
 * @throws ACCOUNT_SUSPENDED, and what `ground` says when the proof does not stand any more
 */
export const openSession = async (
  deps: SessionDeps,
  given: { account: Account; visitor: Visitor; mfa: boolean; ground?: Ground },
): Promise<Opened> => {
  const { sessions, sources, revocations, clock } = deps;
  const { account, visitor, mfa, ground } = given;
  const now = clock.now();
  const pair = newTokenPair();
  const endsAt = now + sessionLifeMs;
  const session: Session = {
    id: newId(),
    accountId: account.id,
    createdAt: now,
    lastUsedAt: now,
    ip: visitor.ip,
    userAgent: visitor.userAgent.slice(0, userAgentMax),
    mfa,
    provenAt: now,
    endsAt,
    idleEndsAt: refreshEnd({ endsAt }, now),
  };
  const source = sources.nameOf(account.id, visitor.source);
  const bounds = { keep: sessionsMax, still: ground?.still, source };
  const inserted = await sessions.insert(session, tokensOf(pair, session, now), bounds);
  if (inserted.kind === 'suspended') throw fail('ACCOUNT_SUSPENDED');
  if (inserted.kind === 'changed') throw fail(ground?.otherwise ?? 'INVALID_SESSION');
  if (inserted.gone > 0) await revocations.announce(account.id);
  await tellNews(deps, inserted.told);
  return opened(pair, account);
};

const isAlive = (found: FoundRefresh, now: number): boolean =>
  found.revokedAt === null && found.expiresAt > now && found.session.endsAt > now;

type Verdict = { kind: 'gone' | 'suspended' } | { kind: 'reuse' | 'opened'; found: FoundRefresh };

/** What a refresh token that was found leads to, and what is written of it. */
const judge = (
  found: FoundRefresh | undefined,
  pair: TokenPair,
  now: number,
): [Verdict, RefreshEffect] => {
  const nothing: RefreshEffect = { kind: 'nothing' };
  if (!found || !isAlive(found, now)) return [{ kind: 'gone' }, nothing];
  if (found.account.status !== 'active') return [{ kind: 'suspended' }, nothing];
  const { token, line, session } = found;
  const verdict = judgeRefresh(token, line, now);
  if (verdict === 'reuse')
    return [
      { kind: 'reuse', found },
      { kind: 'revoke', reason: reused },
    ];
  const issue = tokensOf(pair, session, now);
  if (verdict === 'rotate')
    return [
      { kind: 'opened', found },
      { kind: 'rotate', issue },
    ];
  // A grace within a grace does not renew it: two lines are one client's for ten seconds in all.
  const forkedAt = isForked(line, now) ? (line.forkedAt ?? now) : now;
  return [
    { kind: 'opened', found },
    { kind: 'fork', issue, forkedAt },
  ];
};

/**
 * A new pair for a refresh token, which is used up by it; access tokens that came before the pair end. A used token
 * ends the session, except the immediate predecessor within the grace, once (RFC 9700 section 4.14.2).
 * @throws INVALID_SESSION, ACCOUNT_SUSPENDED, RATE_LIMIT_EXCEEDED
 */
export const refreshSession = async (
  deps: SessionDeps & { reads: ReadLimiter },
  text: string,
): Promise<Opened> => {
  if (!isToken('refresh', text)) throw fail('INVALID_SESSION');
  const { sessions, revocations, clock, log } = deps;
  const hash = tokenHash(text);
  const owner = await sessions.findByRefresh(hash);
  if (!owner) throw fail('INVALID_SESSION');
  await takeRead(deps.reads, 'session_refresh', owner.sessionId);
  const now = clock.now();
  const pair = newTokenPair();
  let verdict: Verdict = { kind: 'gone' };
  const decide = (found: FoundRefresh | undefined): RefreshEffect => {
    const [judged, effect] = judge(found, pair, now);
    verdict = judged;
    return effect;
  };
  await sessions.refresh(owner.accountId, hash, { now, decide });
  const reached = verdict as Verdict;
  if (reached.kind === 'opened') {
    // The older access token ends everywhere within a second.
    await revocations.announce(owner.accountId);
    return opened(pair, reached.found.account);
  }
  if (reached.kind === 'suspended') throw fail('ACCOUNT_SUSPENDED');
  if (reached.kind === 'reuse') {
    log.warn({ account_id: owner.accountId, session_id: owner.sessionId }, 'refresh token reused');
    await revocations.announce(owner.accountId);
  }
  throw fail('INVALID_SESSION');
};

/** Ends the session; every process knows within a second. */
export const endSession = async (
  deps: Pick<SessionDeps, 'sessions' | 'revocations' | 'clock'>,
  session: Session,
): Promise<void> => {
  await deps.sessions.revoke(session.accountId, session.id, deps.clock.now(), {
    reason: 'logout',
  });
  await deps.revocations.announce(session.accountId);
};

// Opening a session, refreshing it, and ending it.
import type { Account } from '../accounts/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import {
  accessLifeMs,
  judgeRefresh,
  refreshEnd,
  type Session,
  sessionLifeMs,
  sessionsMax,
} from './rules.ts';
import type { FoundRefresh, NewToken, SessionStore } from './store.ts';
import { isToken, newTokenPair, type TokenPair, tokenHash } from './tokens.ts';

export type SessionDeps = {
  sessions: SessionStore;
  revocations: Pick<Revocations, 'announce'>;
  clock: Clock;
  log: Log;
};

export type Opened = { tokens: TokenPair; expiresInSeconds: number; account: Account };

/** Where a session is opened from. */
export type Visitor = { ip: string; userAgent: string };

const userAgentMax = 200;

const tokensOf = (pair: TokenPair, session: Pick<Session, 'endsAt'>, now: number): NewToken[] => [
  { hash: tokenHash(pair.access), kind: 'access', expiresAt: now + accessLifeMs },
  { hash: tokenHash(pair.refresh), kind: 'refresh', expiresAt: refreshEnd(session, now) },
];

const opened = (tokens: TokenPair, account: Account): Opened => ({
  ...{ tokens, account },
  expiresInSeconds: accessLifeMs / 1000,
});

/** Opens a session for an account that has proven who it is; `mfa` says whether with a second factor. */
export const openSession = async (
  { sessions, revocations, clock }: SessionDeps,
  { account, visitor, mfa }: { account: Account; visitor: Visitor; mfa: boolean },
): Promise<Opened> => {
  const now = clock.now();
  const pair = newTokenPair();
  const session: Session = {
    id: newId(),
    accountId: account.id,
    createdAt: now,
    lastUsedAt: now,
    ip: visitor.ip,
    userAgent: visitor.userAgent.slice(0, userAgentMax),
    mfa,
    provenAt: now,
    endsAt: now + sessionLifeMs,
  };
  const gone = await sessions.insert(session, tokensOf(pair, session, now), sessionsMax);
  if (gone > 0) await revocations.announce();
  return opened(pair, account);
};

const isAlive = (found: FoundRefresh, now: number): boolean =>
  found.revokedAt === null && found.expiresAt > now && found.session.endsAt > now;

/**
 * A new pair for a refresh token, which is used up by it. A used token ends the session, except the immediate
 * predecessor within the grace, once (reference 06 section 5).
 * @throws INVALID_SESSION, ACCOUNT_SUSPENDED
 */
export const refreshSession = async (deps: SessionDeps, text: string): Promise<Opened> => {
  if (!isToken('refresh', text)) throw fail('INVALID_SESSION');
  const { sessions, revocations, clock, log } = deps;
  const now = clock.now();
  const pair = newTokenPair();
  let seen: FoundRefresh | undefined;
  let verdict: ReturnType<typeof judgeRefresh> | undefined;
  await sessions.refresh(tokenHash(text), now, (found) => {
    seen = found && isAlive(found, now) ? found : undefined;
    if (seen?.account.status !== 'active') return {};
    verdict = judgeRefresh(seen.token, seen, now);
    if (verdict === 'reuse') return { revoke: 'refresh_token_reused' };
    return { issue: tokensOf(pair, seen.session, now), sibling: verdict === 'grace' };
  });
  if (!seen) throw fail('INVALID_SESSION');
  if (seen.account.status !== 'active') throw fail('ACCOUNT_SUSPENDED');
  if (verdict === 'reuse') {
    log.warn({ account_id: seen.account.id, session_id: seen.session.id }, 'refresh token reused');
    await revocations.announce();
    throw fail('INVALID_SESSION');
  }
  return opened(pair, seen.account);
};

/** Ends the session; every process knows within a second. */
export const endSession = async (deps: SessionDeps, session: Session): Promise<void> => {
  await deps.sessions.revoke(session.accountId, session.id, deps.clock.now(), 'logout');
  await deps.revocations.announce();
};

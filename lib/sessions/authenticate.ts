// From an Authorization header to the session it opens.
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { createMemory } from '../keys/memory.ts';
import type { Revocations } from '../keys/revocations.ts';
import { bearerOf } from '../keys/rules.ts';
import { type FoundSession, isProven, type Session } from './rules.ts';
import type { SessionStore } from './store.ts';
import { isToken, tokenHash } from './tokens.ts';

const rememberMs = 60_000;
const rememberedMax = 5_000;
const touchEveryMs = minute;

export type OpenSession = Pick<FoundSession, 'session' | 'account'>;

export type AuthenticateSession = (
  authorization: string | undefined,
  /** needsProof: a session that is remembered without a fresh proof is read again. */
  options?: { needsProof: boolean },
) => Promise<OpenSession>;

/**
 * Sessions by access token, remembered for a minute as long as nothing of their account was revoked.
 * @throws INVALID_SESSION, ACCOUNT_SUSPENDED
 */
export const createAuthenticateSession = (deps: {
  sessions: SessionStore;
  revocations: Revocations;
  clock: Clock;
}): AuthenticateSession => {
  const { sessions, revocations, clock } = deps;
  const memory = createMemory<FoundSession | undefined>({
    ...{ revocations, clock, most: rememberedMax },
    about: (found) => found?.account.id,
    // That a token opens nothing is not remembered.
    keepMs: (found) => (found ? rememberMs : 0),
  });

  const find = async (
    text: string,
    now: number,
    needsProof: boolean,
  ): Promise<FoundSession | undefined> => {
    const known = memory.recall(text)?.value;
    if (known && (!needsProof || isProven(known.session, now))) return known;
    return memory.learn(text, () => sessions.findByAccess(tokenHash(text)));
  };

  // To the minute is enough for a list of sessions, and spares a write per call.
  const touch = async (session: Session, now: number): Promise<void> => {
    if (now - session.lastUsedAt < touchEveryMs) return;
    session.lastUsedAt = now;
    await sessions.touch(session.id, now);
  };

  return async (authorization, { needsProof } = { needsProof: false }) => {
    const text = bearerOf(authorization);
    if (!isToken('access', text)) throw fail('INVALID_SESSION');
    const now = clock.now();
    const found = await find(text, now, needsProof);
    if (!found || found.revokedAt !== null || found.expiresAt <= now) throw fail('INVALID_SESSION');
    if (found.account.status !== 'active') throw fail('ACCOUNT_SUSPENDED');
    await touch(found.session, now);
    return { session: found.session, account: found.account };
  };
};

/**
 * Sensitive changes by session need a fresh proof (reference 06 section 5); those by API key, without a session, do
 * not.
 * @throws REAUTH_REQUIRED
 */
export const requireProof = (session: Session | undefined, now: number): void => {
  if (session && !isProven(session, now)) throw fail('REAUTH_REQUIRED');
};

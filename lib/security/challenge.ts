// Between password and second factor: a token that is good for five minutes and five codes, and for nothing else.

import type { Account } from '../accounts/rules.ts';
import { emailKey } from '../accounts/rules.ts';
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { randomToken } from '../kernel/secrets.ts';
import { type Opened, openSession, type SessionDeps, type Visitor } from '../sessions/open.ts';
import { tokenHash } from '../sessions/tokens.ts';
import { type ChallengeStore, endChallenge } from './challenge-store.ts';
import { guessOf, isFactor, type MfaDeps } from './factor.ts';
import { guessSubject, isVerdict, type Throttle } from './throttle.ts';

const lifeMs = 5 * minute;
const codesPerToken = 5;
const pattern = /^mfa_[\w-]{43}$/;

export type ChallengeDeps = { challenges: ChallengeStore; clock: Clock };

export type Challenge = { mfaToken: string; expiresInSeconds: number };

/**
 * Opens the way to a second factor for an account whose password was right.
 * @throws INVALID_CREDENTIALS when `passwordHash` is not that of the account any more
 */
export const startChallenge = async (
  { challenges, clock }: ChallengeDeps,
  given: { account: Account; passwordHash: string; visitor: Visitor },
): Promise<Challenge> => {
  const { account, passwordHash, visitor } = given;
  const mfaToken = `mfa_${randomToken(32)}`;
  const added = await challenges.addChallenge(tokenHash(mfaToken), {
    ...visitor,
    accountId: account.id,
    passwordHash,
    expiresAt: clock.now() + lifeMs,
  });
  if (!added) throw fail('INVALID_CREDENTIALS');
  return { mfaToken, expiresInSeconds: lifeMs / 1000 };
};

/**
 * POST /v1/clients/security/login/mfa: a session for the right code of an authenticator app, or an unused recovery
 * code.
 * @throws INVALID_SESSION (token), INVALID_CODE, TOO_MANY_ATTEMPTS (of this token), RATE_LIMIT_EXCEEDED (of a source
 * that the account knows, or of all others), ACCOUNT_SUSPENDED
 */
export const answerChallenge = async (
  deps: SessionDeps & ChallengeDeps & MfaDeps & { throttle: Throttle },
  { token, code }: { token: string; code: string },
): Promise<Opened> => {
  if (!pattern.test(token)) throw fail('INVALID_SESSION');
  const { challenges, throttle, clock } = deps;
  const now = clock.now();
  const hash = tokenHash(token);
  const challenge = await challenges.takeChallenge(hash, now);
  if (!challenge) throw fail('INVALID_SESSION');
  const { account, attempts, visitor, expiresAt } = challenge;
  if (account.status !== 'active') throw fail('ACCOUNT_SUSPENDED');
  if (attempts > codesPerToken) throw tooMany(expiresAt, now);
  const email = emailKey(account.email);
  const trusted = await deps.sources.isTrusted(email, visitor.source, now);
  const attempt = { email, source: visitor.source, trusted };
  const subject = guessSubject.ofLogin(account.id, attempt);
  const guess = throttle.guessing(guessOf(code), subject, async () => {
    if (await isFactor(deps, account.id, code)) return;
    throw fail('INVALID_CODE', { attempts_remaining: Math.max(codesPerToken - attempts, 0) });
  });
  await guess.catch(async (error: unknown) => {
    // Nobody looked at the code: an engine was away, or there was no room.
    if (!isVerdict(error)) await challenges.giveBackChallenge(hash).catch(() => undefined);
    throw error;
  });
  const opened = await openSession(deps, {
    ...{ account, visitor, mfa: true },
    ground: {
      still: (standing, trx) => standing.mfaEnabledAt !== null && endChallenge(trx, hash, now),
      otherwise: 'INVALID_SESSION',
    },
  });
  await throttle.clear(attempt);
  return opened;
};

const tooMany = (until: number, now: number) => {
  const seconds = Math.max(Math.ceil((until - now) / 1000), 1);
  return fail('TOO_MANY_ATTEMPTS', {
    ...{ reason: 'failed_verifications', layer: 'origin', dimension: 'login' },
    retry_after_seconds: seconds,
    reset_at: new Date(now + seconds * 1000).toISOString(),
    window_seconds: lifeMs / 1000,
    limit: codesPerToken,
  });
};

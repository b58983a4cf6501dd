// Logging in: address and password, and the way on to a second factor where one is set up.
import type { Passwords } from '../accounts/passwords.ts';
import { emailKey } from '../accounts/rules.ts';
import type { AccountStore, Credentials } from '../accounts/store.ts';
import type { Turnstile } from '../channels/turnstile.ts';
import { fail } from '../kernel/errors.ts';
import { type ReadLimiter, takeRead } from '../limits/reads.ts';
import {
  type Ground,
  type Opened,
  openSession,
  type SessionDeps,
  type Visitor,
} from '../sessions/open.ts';
import type { Still } from '../sessions/store.ts';
import { humanCheck } from '../signup/human.ts';
import { type Challenge, type ChallengeDeps, startChallenge } from './challenge.ts';
import type { Throttle } from './throttle.ts';

export type LoginDeps = SessionDeps &
  ChallengeDeps & {
    accounts: AccountStore;
    passwords: Passwords;
    throttle: Throttle;
    reads: ReadLimiter;
    turnstile: Turnstile | undefined;
  };

/** `turnstileToken` is looked at only past the limit of sources that the account does not know. */
export type Login = {
  email: string;
  password: string;
  turnstileToken: string | undefined;
  visitor: Visitor;
};

export type LoggedIn = { kind: 'open'; opened: Opened } | { kind: 'mfa'; challenge: Challenge };

/** The account of an address and its password; alike, in answer and time, whichever of the two is wrong. */
const prove = async (deps: LoginDeps, login: Login): Promise<Credentials> => {
  const { accounts, passwords } = deps;
  const found = await accounts.findByEmail(login.email);
  const { matches, renewed } = await passwords.check(found?.passwordHash, login.password);
  if (!found || !matches) throw fail('INVALID_CREDENTIALS');
  const { account, passwordHash } = found;
  if (renewed === undefined) return found;
  // Another login may have renewed it meanwhile, or the owner changed it: what is there now is what must match.
  if (!(await accounts.renewPasswordHash(account.id, passwordHash, renewed))) {
    return prove(deps, login);
  }
  return { account, passwordHash: renewed };
};

/**
 * POST /v1/clients/login. A right password with a second factor set up clears nothing until its code is right.
 * @throws INVALID_CREDENTIALS, ACCOUNT_SUSPENDED, RATE_LIMIT_EXCEEDED (dimension login), TURNSTILE_REQUIRED,
 * VALIDATION_ERROR (about turnstile_token), SERVICE_UNAVAILABLE
 */
export const logIn = async (deps: LoginDeps, login: Login): Promise<LoggedIn> => {
  const email = emailKey(login.email);
  const { source, ip } = login.visitor;
  const trusted = await deps.sources.isTrusted(email, source, deps.clock.now());
  const attempt = { email, source, trusted };
  const human = humanCheck(deps.turnstile, { turnstileToken: login.turnstileToken, ip });
  const proven = await deps.throttle.attempting(attempt, human, () => prove(deps, login));
  const { account, passwordHash } = proven;
  if (account.status !== 'active') throw fail('ACCOUNT_SUSPENDED');
  await takeRead(deps.reads, 'session_open', account.id);
  const { visitor } = login;
  if (account.mfaEnabledAt !== null) {
    const challenge = await startChallenge(deps, { account, passwordHash, visitor });
    return { kind: 'mfa', challenge };
  }
  const still: Still = (now) => now.passwordHash === passwordHash && now.mfaEnabledAt === null;
  const ground: Ground = { still, otherwise: 'INVALID_CREDENTIALS' };
  const opened = await openSession(deps, { account, visitor, mfa: false, ground });
  await deps.throttle.clear(attempt);
  return { kind: 'open', opened };
};

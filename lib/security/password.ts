// Changing a password by giving the present one.
import { requireGoodPassword } from '../accounts/password-policy.ts';
import type { Passwords } from '../accounts/passwords.ts';
import { type Account, emailKey } from '../accounts/rules.ts';
import type { AccountStore } from '../accounts/store.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Session } from '../sessions/rules.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { Throttle } from './throttle.ts';

export type PasswordDeps = {
  accounts: AccountStore;
  passwords: Passwords;
  sessions: SessionStore;
  revocations: Pick<Revocations, 'announce'>;
  throttle: Throttle;
  clock: Clock;
};

/** Sets a password that was found good, and ends all sessions but the one that acts. */
export const setPassword = async (
  { accounts, passwords, sessions, revocations, clock }: Omit<PasswordDeps, 'throttle'>,
  given: { accountId: string; password: string; except: string | undefined },
): Promise<void> => {
  const { accountId, password, except } = given;
  await accounts.setPasswordHash(accountId, await passwords.hash(password));
  await sessions.revokeAll(accountId, clock.now(), { except, reason: 'password_changed' });
  await revocations.announce();
};

/**
 * POST /v1/clients/password. A wrong present password counts like one at login.
 * @throws INVALID_CREDENTIALS, VALIDATION_ERROR (the new one is easily guessed), RATE_LIMIT_EXCEEDED
 */
export const changePassword = async (
  deps: PasswordDeps,
  given: {
    account: Account;
    session: Session | undefined;
    current: string;
    wanted: string;
    source: string;
  },
): Promise<void> => {
  const { account, session, current, wanted, source } = given;
  await requireGoodPassword('new_password', wanted, account);
  const attempt = { email: emailKey(account.email), source };
  await deps.throttle.take(attempt);
  const found = await deps.accounts.findCredentials(account.id);
  const { matches } = await deps.passwords.check(found?.passwordHash, current);
  if (!matches) throw fail('INVALID_CREDENTIALS');
  await deps.throttle.clear(attempt);
  await setPassword(deps, { accountId: account.id, password: wanted, except: session?.id });
};

// Changing a password by giving the present one.
import type { Act } from '../accounts/acts.ts';
import { requireGoodPassword } from '../accounts/password-policy.ts';
import type { Passwords } from '../accounts/passwords.ts';
import { type Account, emailKey } from '../accounts/rules.ts';
import type { AccountStore } from '../accounts/store.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { Session } from '../sessions/rules.ts';
import type { CredentialStore } from './credential-store.ts';
import { guessSubject, type Throttle } from './throttle.ts';

export type PasswordDeps = {
  accounts: AccountStore;
  passwords: Passwords;
  credentials: CredentialStore;
  revocations: Pick<Revocations, 'announce'>;
  throttle: Throttle;
  news: NewsStore;
  announcer: Announcer;
  clock: Clock;
  log: Log;
};

/**
 * Sets the hash of a password that was found good, and ends all sessions but the one that acts. False, and nothing
 * changed, when `present` is not the account's hash any more.
 */
export const setPassword = async (
  deps: Omit<PasswordDeps, 'accounts' | 'passwords' | 'throttle'>,
  given: {
    accountId: string;
    hash: string;
    present?: string | undefined;
    except: string | undefined;
    act: Act;
  },
): Promise<boolean> => {
  const { credentials, revocations, clock } = deps;
  const { accountId, ...rest } = given;
  const ending = { now: clock.now(), reason: 'password_changed' };
  const told = await credentials.replacePassword(accountId, { ...rest, ...ending });
  if (!told) return false;
  await revocations.announce(accountId);
  await tellNews(deps, told);
  return true;
};

/**
 * POST /v1/clients/password. A wrong present password counts for the session, or for all keys of the account, alone:
 * what others try at login refuses no one here.
 * @throws INVALID_CREDENTIALS, VALIDATION_ERROR (the new one is easily guessed), RATE_LIMIT_EXCEEDED,
 * KEY_MANAGEMENT_DISABLED, INVALID_API_KEY (the key that acts ended meanwhile)
 */
export const changePassword = async (
  deps: PasswordDeps,
  given: {
    account: Account;
    session: Session | undefined;
    current: string;
    wanted: string;
    source: string;
    act: Act;
  },
): Promise<void> => {
  const { account, session, current, wanted, source, act } = given;
  await requireGoodPassword('new_password', wanted, account);
  const subject = session ? guessSubject.ofSession(session.id) : guessSubject.ofKeys(account.id);
  let present: string | undefined;
  let hash = '';
  await deps.throttle.guessing('password', subject, async () => {
    const found = await deps.accounts.findCredentials(account.id);
    present = found?.passwordHash;
    const { matches } = await deps.passwords.check(present, current);
    if (!matches) throw fail('INVALID_CREDENTIALS');
    hash = await deps.passwords.hash(wanted);
  });
  // Of two changes at once the one that comes second was proven with a password that is gone.
  const changed = { accountId: account.id, hash, present, except: session?.id, act };
  if (!(await setPassword(deps, changed))) throw fail('INVALID_CREDENTIALS');
  await deps.throttle.forget({ email: emailKey(account.email), source });
};

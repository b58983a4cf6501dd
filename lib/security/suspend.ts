// What the operators of the service may do to an account: suspend it, take it back, end its sessions.
import type { AccountStore } from '../accounts/store.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { accountEvent } from '../messages/events.ts';
import { tellNews } from '../messages/news.ts';
import type { NewsStore } from '../messages/news-store.ts';
import type { CredentialStore } from './credential-store.ts';

export type SuspendDeps = {
  accounts: AccountStore;
  credentials: CredentialStore;
  revocations: Pick<Revocations, 'announce'>;
  news: NewsStore;
  announcer: Announcer;
  clock: Clock;
  log: Log;
};

/**
 * Ends all sessions of an account, and its logins under way, on every process within a second; answers how many
 * sessions.
 */
export const forceLogout = async (
  { credentials, revocations, clock }: Pick<SuspendDeps, 'credentials' | 'revocations' | 'clock'>,
  accountId: string,
  requestId: string | null = null,
): Promise<number> => {
  const act = { by: 'operator' as const, credentialId: null, ip: null, requestId };
  const ended = await credentials.endAll(accountId, { now: clock.now(), reason: 'forced' }, act);
  await revocations.announce(accountId);
  return ended;
};

/**
 * Suspends an account: its keys and sessions are refused everywhere within a second, and its webhook is told.
 * Suspending it again changes nothing, and answers false.
 * @throws NOT_FOUND
 */
export const suspendAccount = async (
  deps: SuspendDeps,
  given: { accountId: string; reason: string; requestId: string },
): Promise<boolean> => {
  const { accountId, reason, requestId } = given;
  const { credentials, revocations, clock } = deps;
  const now = clock.now();
  const subject = `${accountId} ${now}`;
  const event = accountEvent('account.suspended', {
    ...{ accountId, mode: 'live', at: now, requestId, subject, data: { reason } },
  });
  const changed = await credentials.suspend(accountId, { now, reason, told: [event] });
  if (changed === undefined) throw fail('NOT_FOUND');
  await revocations.announce(accountId);
  if (changed) await tellNews(deps, [event]);
  return changed;
};

/**
 * Takes a suspended account back; its keys work again, its sessions stay ended. False when it was not suspended.
 * @throws NOT_FOUND
 */
export const reinstateAccount = async (
  { accounts, revocations }: Pick<SuspendDeps, 'accounts' | 'revocations'>,
  accountId: string,
): Promise<boolean> => {
  if (!(await accounts.find(accountId))) throw fail('NOT_FOUND');
  const changed = await accounts.setStatus(accountId, 'active');
  await revocations.announce(accountId);
  return changed;
};

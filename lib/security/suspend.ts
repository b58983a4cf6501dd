// What the operators of the service may do to an account: suspend it, take it back, end its sessions.
import type { AccountStore } from '../accounts/store.ts';
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { Revocations } from '../keys/revocations.ts';
import type { Announcer } from '../messages/announce.ts';
import { accountEvent } from '../messages/events.ts';
import { tell } from '../messages/tell.ts';
import type { CredentialStore } from './credential-store.ts';

export type SuspendDeps = {
  accounts: AccountStore;
  credentials: CredentialStore;
  revocations: Pick<Revocations, 'announce'>;
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
): Promise<number> => {
  const ended = await credentials.endAll(accountId, { now: clock.now(), reason: 'forced' });
  await revocations.announce();
  return ended;
};

/**
 * Suspends an account: its keys and sessions are refused everywhere within a second, and its webhook is told.
 * Suspending it again changes nothing.
 * @throws NOT_FOUND
 */
export const suspendAccount = async (
  deps: SuspendDeps,
  given: { accountId: string; reason: string; requestId: string },
): Promise<void> => {
  const { accountId, reason, requestId } = given;
  if (!(await deps.accounts.find(accountId))) throw fail('NOT_FOUND');
  const at = deps.clock.now();
  const changed = await deps.accounts.setStatus(accountId, 'suspended', { at, reason });
  await forceLogout(deps, accountId);
  if (!changed) return;
  const subject = `${accountId} ${at}`;
  await tell(
    deps,
    accountEvent('account.suspended', {
      ...{ accountId, mode: 'live', at, requestId, subject, data: { reason } },
    }),
  );
};

/** Takes a suspended account back; its keys work again, its sessions stay ended. @throws NOT_FOUND */
export const reinstateAccount = async (
  { accounts, revocations }: Pick<SuspendDeps, 'accounts' | 'revocations'>,
  accountId: string,
): Promise<void> => {
  if (!(await accounts.find(accountId))) throw fail('NOT_FOUND');
  await accounts.setStatus(accountId, 'active');
  await revocations.announce();
};

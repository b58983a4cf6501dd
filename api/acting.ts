// Who makes a call that changes an account, as its security log and its events tell it.
import type { Act } from '../lib/accounts/acts.ts';
import type { Changer } from '../lib/accounts/profile.ts';
import { requireActingKey } from '../lib/keys/store.ts';
import { isProven } from '../lib/sessions/rules.ts';
import type { Callers } from './route.ts';

type Call = Pick<Callers['account'], 'session' | 'keyId'> & {
  requestId: string;
  visitor(): { ip: string };
};

/**
 * What a call that changes the account counts by: all keys of an account together, since a key makes others at will,
 * and its sessions together. A key that leaked uses up nothing that its owner needs to end the leak.
 */
export const changesOf = ({
  account,
  session,
}: Pick<Callers['account'], 'account' | 'session'>): string =>
  session ? account.id : `keys:${account.id}`;

/** The credential of a call and where it comes from. */
export const actOf = ({ session, keyId, requestId, visitor }: Call): Act => ({
  by: session ? 'session' : 'key',
  credentialId: session?.id ?? keyId ?? null,
  ip: visitor().ip,
  requestId,
});

/** Who changes the account with this call at `now` (ms). */
export const changerOf = (call: Call, now: number): Changer => ({
  act: actOf(call),
  proven: call.session !== undefined && isProven(call.session, now),
  mayAct: (trx, { account, act }) => requireActingKey(trx, account, { act, now }),
});

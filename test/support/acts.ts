// The owner of an account, as tests that call the product's functions by themselves name who acts.
import type { Act } from '../../lib/accounts/acts.ts';
import type { KeyStore } from '../../lib/keys/store.ts';

/** An act by a session that no store knows. */
export const ownerAct: Act = { by: 'session', credentialId: null, ip: null, requestId: null };

/** The same for changes of the account. */
export const ownerActs = { act: ownerAct, proven: true, mayAct: () => Promise.resolve() };

/** The same for the store of accounts. */
export const ownerChange = { act: ownerAct, at: 0, allow: () => Promise.resolve() };

/** Ends a key in MySQL without telling anybody. */
export const endKey = (keys: KeyStore, accountId: string, id: string, now: number): Promise<void> =>
  keys.change(accountId, { act: ownerAct, now, work: (within) => within.end([id], now) });

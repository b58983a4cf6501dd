// From an Authorization header to the account it speaks for.
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import { createMemory } from './memory.ts';
import type { Revocations } from './revocations.ts';
import { bearerOf, isKeyText, isUsable, keyHash, type Principal } from './rules.ts';
import type { FoundKey, KeyStore } from './store.ts';
import type { KeyUses } from './uses.ts';

const rememberMs = 60_000;
const rememberUnknownMs = 5_000;
const rememberedMax = 10_000;

const check = (found: FoundKey | undefined, now: number): Principal => {
  if (!found || !isUsable(found, now)) throw fail('INVALID_API_KEY');
  if (found.principal.account.status !== 'active') throw fail('ACCOUNT_SUSPENDED');
  return found.principal;
};

export type Authenticate = (authorization: string | undefined) => Promise<Principal>;

/**
 * Keys by hash, remembered for a minute as long as nothing of their account was revoked; MySQL is asked only for keys that
 * are not remembered.
 * @throws INVALID_API_KEY, ACCOUNT_SUSPENDED (spec section 5.2)
 */
export const createAuthenticate = (deps: {
  keys: KeyStore;
  revocations: Revocations;
  keyUses: Pick<KeyUses, 'note'>;
  clock: Clock;
}): Authenticate => {
  const memory = createMemory<FoundKey | undefined>({
    ...{ revocations: deps.revocations, clock: deps.clock, most: rememberedMax },
    about: (found) => found?.principal.accountId,
    keepMs: (found) => (found ? rememberMs : rememberUnknownMs),
  });

  const find = async (text: string): Promise<FoundKey | undefined> => {
    const known = memory.recall(text);
    if (known) return known.value;
    return memory.learn(text, () => deps.keys.findBySecret(keyHash(text)));
  };

  return async (authorization) => {
    const text = bearerOf(authorization);
    if (!isKeyText(text)) throw fail('INVALID_API_KEY');
    const now = deps.clock.now();
    const principal = check(await find(text), now);
    deps.keyUses.note(principal.keyId);
    return principal;
  };
};

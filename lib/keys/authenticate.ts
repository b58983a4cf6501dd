// From an Authorization header to the account it speaks for.
import type { Clock } from '../kernel/clock.ts';
import { fail } from '../kernel/errors.ts';
import type { Revocations } from './revocations.ts';
import { bearerOf, isKeyText, isUsable, keyHash, type Principal } from './rules.ts';
import type { FoundKey, KeyStore } from './store.ts';
import type { KeyUses } from './uses.ts';

const rememberMs = 60_000;
const rememberUnknownMs = 5_000;
const rememberedMax = 10_000;

type Remembered = { found: FoundKey | undefined; epoch: string; until: number };

const check = (found: FoundKey | undefined, now: number): Principal => {
  if (!found || !isUsable(found, now)) throw fail('INVALID_API_KEY');
  if (found.principal.account.status !== 'active') throw fail('ACCOUNT_SUSPENDED');
  return found.principal;
};

export type Authenticate = (authorization: string | undefined) => Promise<Principal>;

/**
 * Keys by hash, remembered for a minute as long as nothing was revoked anywhere; MySQL is asked only for keys that
 * are not remembered.
 * @throws INVALID_API_KEY, ACCOUNT_SUSPENDED (spec section 5.2)
 */
export const createAuthenticate = (deps: {
  keys: KeyStore;
  revocations: Revocations;
  keyUses: Pick<KeyUses, 'note'>;
  clock: Clock;
}): Authenticate => {
  const remembered = new Map<string, Remembered>();

  const find = async (text: string, now: number): Promise<FoundKey | undefined> => {
    const epoch = deps.revocations.epoch();
    const known = remembered.get(text);
    if (known && known.epoch === epoch && known.until > now) return known.found;
    const found = await deps.keys.findBySecret(keyHash(text));
    if (epoch !== undefined) {
      if (remembered.size >= rememberedMax) remembered.clear();
      const until = now + (found ? rememberMs : rememberUnknownMs);
      remembered.set(text, { found, epoch, until });
    }
    return found;
  };

  return async (authorization) => {
    const text = bearerOf(authorization);
    if (!isKeyText(text)) throw fail('INVALID_API_KEY');
    const now = deps.clock.now();
    const principal = check(await find(text, now), now);
    deps.keyUses.note(principal.keyId);
    return principal;
  };
};

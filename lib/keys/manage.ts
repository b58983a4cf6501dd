// Keys in their owner's hands: the list, new ones, rotation with a grace, and the end of one.
import type { Clock } from '../kernel/clock.ts';
import { day, hour } from '../kernel/clock.ts';
import { fail, invalid } from '../kernel/errors.ts';
import type { Mode } from '../messages/rules.ts';
import { type IssuedKey, newKey } from './issue.ts';
import type { Revocations } from './revocations.ts';
import type { KeyRecord } from './rules.ts';
import type { KeyStore } from './store.ts';

/** Keys of one mode that an account may hold (issue of the contract's silence: reference 06 section 5). */
export const keysMax = 20;
/** How long a rotated key goes on working beside its successor. */
export const rotationGraceMs = 24 * hour;
/** How long ended keys stay in the list. */
const endedShownMs = 30 * day;

export type KeyDeps = { keys: KeyStore; revocations: Pick<Revocations, 'announce'>; clock: Clock };

export type KeyStatus = 'active' | 'expiring' | 'expired' | 'revoked';

/** What a key is at `now` (ms). */
export const keyStatus = (
  { revokedAt, expiresAt }: Pick<KeyRecord, 'revokedAt' | 'expiresAt'>,
  now: number,
): KeyStatus => {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt === null) return 'active';
  return expiresAt > now ? 'expiring' : 'expired';
};

const full = (mode: Mode) =>
  invalid({
    field: 'mode',
    issue: `there are ${keysMax} ${mode} keys already; revoke one of them first`,
  });

/** Newest first; of those that ended only the last 30 days'. */
export const listKeys = ({ keys, clock }: KeyDeps, accountId: string): Promise<KeyRecord[]> =>
  keys.list(accountId, clock.now() - endedShownMs);

/**
 * Makes a key.
 * @throws VALIDATION_ERROR when the account holds as many of this mode as it may
 */
export const createKey = async (
  { keys }: KeyDeps,
  request: { accountId: string; name: string; mode: Mode },
): Promise<IssuedKey> => {
  const issued = newKey(request);
  const { accountId, mode } = request;
  await keys.change(accountId, async (within) => {
    if ((await within.countLasting(mode)) >= keysMax) throw full(mode);
    await within.insert(issued.record, issued.hash);
  });
  return issued;
};

export type Rotated = { issued: IssuedKey; before: { id: string; expiresAt: number } };

/**
 * Replaces a key by one of the same name and mode; the old one works for another day. Rotating a key that is in its
 * grace gives another successor and leaves that grace as it is.
 * @throws NOT_FOUND, VALIDATION_ERROR (see createKey)
 */
export const rotateKey = async (
  deps: KeyDeps,
  { accountId, id }: { accountId: string; id: string | undefined },
): Promise<Rotated> => {
  const { keys, revocations, clock } = deps;
  const now = clock.now();
  const rotated = await keys.change(accountId, async (within): Promise<Rotated> => {
    const old = await within.findUsable(id, now);
    if (!old) throw fail('NOT_FOUND');
    const lasting = await within.countLasting(old.mode);
    if (old.expiresAt !== null && lasting >= keysMax) throw full(old.mode);
    const expiresAt = old.expiresAt ?? now + rotationGraceMs;
    const issued = newKey({ accountId, name: old.name, mode: old.mode });
    const record = { ...issued.record, familyId: old.familyId };
    await within.insert(record, issued.hash);
    await within.expire(old.id, expiresAt);
    return { issued: { ...issued, record }, before: { id: old.id, expiresAt } };
  });
  await revocations.announce(accountId);
  return rotated;
};

// Issuing and revoking API keys.
import { fail } from '../kernel/errors.ts';
import { idTime, newId } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import type { Revocations } from './revocations.ts';
import { type KeyRecord, keyFacts, keyHash, newKeyText } from './rules.ts';
import type { KeyStore } from './store.ts';

export type KeyRequest = { accountId: string; name: string; mode: Mode };

export type IssuedKey = { record: KeyRecord; key: string; hash: Buffer };

/** A key that is stored nowhere yet; its text is in the result and nowhere else. */
export const newKey = (request: KeyRequest): IssuedKey => {
  const id = newId();
  const key = newKeyText(request.mode);
  const record: KeyRecord = {
    ...request,
    id,
    ...keyFacts(key, request.mode),
    createdAt: idTime(id),
    expiresAt: null,
    revokedAt: null,
    familyId: id,
    lastUsedAt: null,
  };
  return { record, key, hash: keyHash(key) };
};

/** Makes and stores a key. */
export const issueKey = async (
  deps: { keys: KeyStore },
  request: KeyRequest,
): Promise<IssuedKey> => {
  const issued = newKey(request);
  await deps.keys.insert(issued.record, issued.hash);
  return issued;
};

/**
 * Ends a key on every process within a second. One that ended before is not found, but everybody is told again:
 * whoever ended it may not have come to it.
 * @throws NOT_FOUND
 */
export const revokeKey = async (
  deps: { keys: KeyStore; revocations: Revocations },
  request: { accountId: string; id: string; now: number },
): Promise<void> => {
  const outcome = await deps.keys.revoke(request.accountId, request.id, request.now);
  if (outcome !== 'missing') await deps.revocations.announce(request.accountId);
  if (outcome !== 'ended') throw fail('NOT_FOUND');
};

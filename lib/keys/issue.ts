// Issuing and revoking API keys.
import { fail } from '../kernel/errors.ts';
import { idTime, newId } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import type { Revocations } from './revocations.ts';
import { type KeyRecord, keyFacts, keyHash, newKeyText } from './rules.ts';
import type { KeyStore } from './store.ts';

/** Makes a key; its text is in the result and nowhere else. */
export const issueKey = async (
  deps: { keys: KeyStore },
  request: { accountId: string; name: string; mode: Mode },
): Promise<{ record: KeyRecord; key: string }> => {
  const id = newId();
  const key = newKeyText(request.mode);
  const record: KeyRecord = {
    ...request,
    id,
    ...keyFacts(key, request.mode),
    createdAt: idTime(id),
    expiresAt: null,
    revokedAt: null,
  };
  await deps.keys.insert(record, keyHash(key));
  return { record, key };
};

/**
 * Ends a key on every process within a second.
 * @throws NOT_FOUND
 */
export const revokeKey = async (
  deps: { keys: KeyStore; revocations: Revocations },
  request: { accountId: string; id: string; now: number },
): Promise<void> => {
  if (!(await deps.keys.revoke(request.accountId, request.id, request.now)))
    throw fail('NOT_FOUND');
  await deps.revocations.announce();
};

// Issuing API keys.
import { idTime, newId } from '../kernel/ids.ts';
import type { Mode } from '../messages/rules.ts';
import { type KeyRecord, keyFacts, keyHash, newKeyText } from './rules.ts';

export type KeyRequest = {
  accountId: string;
  name: string;
  mode: Mode;
  /** The key that makes it; null: a session, or signing up. */
  madeByKey: string | null;
};

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

// What keys may not do: each reads its own mode alone, a test key touches nothing that live traffic depends on, a rotated
// one makes nothing that lasts.
import { fail, invalid } from '../kernel/errors.ts';
import type { Mode } from '../messages/rules.ts';

/**
 * A test key lies in more hands than a live one, so it opens no way to live traffic.
 * @throws REAUTH_REQUIRED when the call was made with a test key
 */
export const requireLiveRights = (keyMode: Mode | undefined): void => {
  if (keyMode !== 'test') return;
  const message = 'A test key cannot do this. Use a live key or a session.';
  throw fail('REAUTH_REQUIRED', {}, { message });
};

/**
 * A key that was rotated, perhaps because it leaked, works for its grace and leaves nothing behind that works longer.
 * @throws REAUTH_REQUIRED when the call was made with such a key
 */
export const requireLastingKey = (keyEnds: boolean): void => {
  if (!keyEnds) return;
  const message = 'A key that was rotated cannot do this. Use its successor or a session.';
  throw fail('REAUTH_REQUIRED', {}, { message });
};

/**
 * The mode to which a list or a report is narrowed: a key reads its own, a session both unless it asks for one.
 * `keyMode` is undefined for a session, `asked` where the call named no mode; undefined answers both modes.
 * @throws VALIDATION_ERROR on `mode` when a key asks for the other mode
 */
export const readableMode = (
  keyMode: Mode | undefined,
  asked?: Mode | undefined,
): Mode | undefined => {
  if (keyMode === undefined) return asked;
  if (asked !== undefined && asked !== keyMode) {
    const issue = `must be ${keyMode}: a ${keyMode} key reads its own mode alone; a session reads both`;
    throw invalid({ field: 'mode', issue });
  }
  return keyMode;
};

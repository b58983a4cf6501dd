// What some keys may not do: a test key touches nothing that live traffic depends on, a rotated one makes nothing that lasts.
import { fail } from '../kernel/errors.ts';
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

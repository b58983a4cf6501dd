// What a test key may not do: touch anything that live traffic depends on.
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

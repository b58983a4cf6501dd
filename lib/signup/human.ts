// The bot check of what visitors may do without an account.
import type { Turnstile } from '../channels/turnstile.ts';
import { fail, invalid } from '../kernel/errors.ts';

const retrySeconds = 5;

/** The bot check of one call, run where it is needed; undefined where none is configured. */
export type HumanCheck = (() => Promise<void>) | undefined;

/**
 * The bot check of a call that needs one only past a limit.
 * @throws (when run) TURNSTILE_REQUIRED without a token, else as requireHuman
 */
export const humanCheck = (
  turnstile: Turnstile | undefined,
  visitor: { turnstileToken: string | undefined; ip: string },
): HumanCheck => {
  if (!turnstile) return undefined;
  return async () => {
    if (visitor.turnstileToken === undefined) throw fail('TURNSTILE_REQUIRED');
    await requireHuman({ turnstile }, visitor);
  };
};

// The token works once, so it is looked at last: a mistake in another field does not use it up.
/**
 * Lets a person pass, where the bot check is configured.
 * @throws VALIDATION_ERROR about turnstile_token, SERVICE_UNAVAILABLE when the provider cannot be asked
 */
export const requireHuman = async (
  { turnstile }: { turnstile: Turnstile | undefined },
  visitor: { turnstileToken: string | undefined; ip: string },
): Promise<void> => {
  if (!turnstile) return;
  const { turnstileToken: token, ip } = visitor;
  if (token === undefined) throw invalid({ field: 'turnstile_token', issue: 'is required' });
  const verdict = await turnstile.check({ token, ip });
  if (verdict === 'unavailable') {
    throw fail(
      'SERVICE_UNAVAILABLE',
      { retry_after_seconds: retrySeconds },
      { message: 'The bot check cannot be reached at the moment. Nothing was done.' },
    );
  }
  if (verdict === 'refused') {
    const issue = 'was not accepted; it works once and for five minutes, so take a new one';
    throw invalid({ field: 'turnstile_token', issue });
  }
};

// Cloudflare Turnstile: whether a person solved the challenge (reference 02 section 11).
import { type Http, HttpFailure } from '../infra/http.ts';
import { parseObject } from './channel.ts';

export type TurnstileVerdict = 'passed' | 'refused' | 'unavailable';

export type Turnstile = {
  /** Never throws: a provider that cannot be asked is a verdict of its own. */
  check(attempt: { token: string; ip: string }): Promise<TurnstileVerdict>;
};

// A wrong secret is our mistake and not the visitor's; internal-error says itself that trying again helps.
const ours = new Set([
  'missing-input-secret',
  'invalid-input-secret',
  'bad-request',
  'internal-error',
]);

const readVerdict = (text: string): TurnstileVerdict => {
  const body = parseObject(text);
  if (body?.success === true) return 'passed';
  const errors = Array.isArray(body?.['error-codes']) ? body['error-codes'] : [];
  return body === undefined || errors.some((error) => ours.has(String(error)))
    ? 'unavailable'
    : 'refused';
};

/** Siteverify at `baseUrl`. */
export const createTurnstile = (options: {
  http: Http;
  baseUrl: string;
  secret: string;
}): Turnstile => ({
  check: async ({ token, ip }) => {
    try {
      const { status, text } = await options.http.send({
        method: 'POST',
        url: `${options.baseUrl}/turnstile/v0/siteverify`,
        json: { secret: options.secret, response: token, remoteip: ip },
      });
      return status === 200 ? readVerdict(text) : 'unavailable';
    } catch (error) {
      if (!(error instanceof HttpFailure)) throw error;
      return 'unavailable';
    }
  },
});

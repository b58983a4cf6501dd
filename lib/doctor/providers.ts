// Stripe and Turnstile: whether they take our credentials.
import type { Http } from '../infra/http.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import { type Finding, findingsOf } from './rules.ts';

/** What a look at a provider needs. */
export type ProviderDeps = { http: Http; config: Config; clock: Clock };

const onOthers = findingsOf('Other providers');

/** Stripe's key, by a call that changes nothing. */
export const examineStripe = async ({ http, config }: ProviderDeps): Promise<Finding[]> => {
  if (config.stripeSecretKey === '') return [];
  const { ok, error } = onOthers;
  try {
    const { status } = await http.send({
      method: 'GET',
      url: `${config.stripeBaseUrl}/v1/checkout/sessions?limit=1`,
      headers: { authorization: `Bearer ${config.stripeSecretKey}` },
    });
    return status === 401 || status === 403
      ? [
          error(
            'stripe.key',
            'Stripe does not take STRIPE_SECRET_KEY.',
            'Make a key in Stripe’s dashboard.',
          ),
        ]
      : [ok('stripe.key_taken', 'Stripe takes the key.')];
  } catch {
    return [
      error(
        'stripe.away',
        'Stripe does not answer.',
        'See whether this machine reaches STRIPE_BASE_URL.',
      ),
    ];
  }
};

/** Turnstile's secret, by a token nobody has. */
export const examineTurnstile = async ({ http, config }: ProviderDeps): Promise<Finding[]> => {
  if (config.turnstileSecret === '') return [];
  const { ok, error } = onOthers;
  try {
    const { text } = await http.send({
      method: 'POST',
      url: `${config.turnstileBaseUrl}/turnstile/v0/siteverify`,
      json: { secret: config.turnstileSecret, response: 'doctor' },
    });
    return /invalid-input-secret|missing-input-secret/.test(text)
      ? [
          error(
            'turnstile.secret',
            'Turnstile does not take TURNSTILE_SECRET: nobody can register.',
            'Copy the secret of the widget anew.',
          ),
        ]
      : [ok('turnstile.secret_taken', 'Turnstile takes the secret.')];
  } catch {
    return [
      error(
        'turnstile.away',
        'Turnstile does not answer: nobody can register.',
        'See whether this machine reaches TURNSTILE_BASE_URL.',
      ),
    ];
  }
};

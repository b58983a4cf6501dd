// Stripe and Turnstile: whether they take our credentials.
import { parseObject } from '../channels/channel.ts';
import type { Http } from '../infra/http.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Config } from '../kernel/config.ts';
import { type Finding, findingsOf } from './rules.ts';

/** What a look at a provider needs. */
export type ProviderDeps = { http: Http; config: Config; clock: Clock };

const onOthers = findingsOf('Other providers');

/** What Stripe must tell of; lib/channels/payments.ts reads them, /docs/self-hosting names them. */
export const stripeEvents = [
  ...['checkout.session.completed', 'checkout.session.async_payment_succeeded'],
  ...['refund.created', 'refund.updated', 'refund.failed'],
  ...['charge.dispute.funds_withdrawn', 'charge.dispute.funds_reinstated'],
];

const inboundPath = '/v1/inbound/payments';

type Endpoint = { url?: unknown; status?: unknown; enabled_events?: unknown };

/** Whether Stripe calls us, and tells of everything. A key that may not ask is no mistake. */
const judgeEndpoints = (text: string): Finding[] => {
  const { ok, warning, error } = onOthers;
  const { data } = parseObject(text) ?? {};
  if (!Array.isArray(data)) return [];
  const ours = (data as Endpoint[]).filter(
    ({ url, status }) => status === 'enabled' && String(url).endsWith(inboundPath),
  );
  if (ours.length === 0) {
    const advice = `Add a webhook endpoint https://<your host>${inboundPath}; /docs/self-hosting has its events.`;
    return [
      error(
        'stripe.no_webhook',
        'Stripe does not know where to call: no payment is booked.',
        advice,
      ),
    ];
  }
  const told = new Set(ours.flatMap(({ enabled_events: events }) => (events as string[]) ?? []));
  const missing = stripeEvents.filter((event) => !told.has(event));
  if (missing.length === 0 || told.has('*')) {
    return [ok('stripe.webhook', 'Stripe tells of payments and refunds.')];
  }
  const missed = `Stripe does not tell of ${missing.join(', ')}.`;
  return [warning('stripe.events', missed, 'Add them to the webhook endpoint.')];
};

/** Stripe's key, by a call that changes nothing, and whether its webhook leads here. */
export const examineStripe = async ({ http, config }: ProviderDeps): Promise<Finding[]> => {
  if (config.stripeSecretKey === '') return [];
  const { ok, error } = onOthers;
  const ask = (path: string) =>
    http.send({
      method: 'GET',
      url: `${config.stripeBaseUrl}${path}`,
      headers: { authorization: `Bearer ${config.stripeSecretKey}` },
    });
  try {
    const { status } = await ask('/v1/checkout/sessions?limit=1');
    if (status === 401 || status === 403) {
      const advice = 'Make a key in Stripe’s dashboard.';
      return [error('stripe.key', 'Stripe does not take STRIPE_SECRET_KEY.', advice)];
    }
    const endpoints = await ask('/v1/webhook_endpoints?limit=100');
    return [ok('stripe.key_taken', 'Stripe takes the key.'), ...judgeEndpoints(endpoints.text)];
  } catch {
    const advice = 'See whether this machine reaches STRIPE_BASE_URL.';
    return [error('stripe.away', 'Stripe does not answer.', advice)];
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

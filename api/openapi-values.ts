// What fields look like in examples: plausible values by field name, told apart by type where a name means two things.

import { cursorOf } from '../lib/kernel/cursor.ts';

const at = (clock: string): string => `2026-11-20T12:${clock}.000Z`;

const id = '0192f0c1-7a3b-7c4d-8e5f-0123456789ab';

/** Candidates per field; the first one that fits the field's type is shown. */
export const exampleValues: Record<string, readonly unknown[]> = {
  ...{ id: [id], previous_key_id: ['0192f0c1-7a3b-7c4d-8e5f-ba9876543210'] },
  ...{ event_id: ['evt_5f1c0e9b7a3d4c2e8b6f0a1d2c3e4f50'], request_id: [id], deposit_id: [id] },
  ...{ created_at: [at('00:00')], updated_at: [at('00:00')], connected_at: [at('00:00')] },
  ...{ expires_at: [at('05:00')], delivered_at: [at('00:02')], verified_at: [at('00:21')] },
  ...{ last_used_at: [at('30:00')], reset_at: [at('10:00')], confirmed_at: [at('00:00')] },
  ...{ broken_at: [null], cancelled_at: [null], reviewed_at: [null], since: [null] },
  ...{ at: [at('00:00')], as_of: [at('00:00')], generated_at: [at('00:00')] },
  ...{ next_attempt_at: [null], previous_valid_until: ['2026-11-21T12:00:00.000Z'] },
  ...{ from: ['2026-11-01T00:00:00.000Z'], to: ['2026-11-21T00:00:00.000Z'], date: ['2026-11-20'] },
  ...{ phone: ['+14155550123'], country: ['US'], channel: ['whatsapp'], mode: ['live'] },
  ...{ failure_reason: [null], broken_reason: [null], fallback_used: [false] },
  ...{ verified: [true, 861], attempts_remaining: [5], first_confirm: [false], replace: [true] },
  ...{
    secret: ['JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'],
    qr_code: ['data:image/png;base64,iVBORw0KGgo…'],
  },
  otpauth_url: [
    'otpauth://totp/Example:+14155550123?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Example&algorithm=SHA1&digits=6&period=30',
  ],
  ...{ already_enrolled: [false], disabled: [true], unlinked: [true], sent: [true] },
  ...{ name: ['Ada Lovelace'], company: ['Analytical Engines Ltd'], locale: ['en'] },
  ...{ email: ['dev@example.com'], password: ['correct horse battery staple'] },
  current_password: ['correct horse battery staple'],
  new_password: ['another horse, another battery'],
  turnstile_token: ['0.mF74FV8wEufAWhIGrHlxbNeWzQTxZNQj'],
  ...{ disabled_reason: [null], failing_since: [null], paused_until: [null], finished_at: [null] },
  ...{ failures: [0], disables_at: [null], disabled_at: [null] },
  ...{ started_at: [at('00:00')], total: [12], released: [7] },
  ...{ webhook_url: ['https://api.example.com/tessera'], spend_cap_hourly: [25] },
  settings: ['webhook_url'],
  setting: ['webhook_url'],
  webhook_secret: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
  ...{ waba_template_language: ['en_US'], billing_plan: ['pay_per_success'], mfa_enabled: [false] },
  ...{ key: ['sk_live_tsr_…'], live: ['sk_live_tsr_…'], test: ['sk_test_tsr_…'] },
  ...{ session_token: ['sess_…'], refresh_token: ['rt_…'], mfa_token: ['mfa_…'] },
  ...{ logged_out: [true], changed: [true], revoked: [true, 2], reauthenticated: [true] },
  ...{
    recovery_codes: ['7KQM-2RXD-94WT-B0ZC-J5HN-8VFA'],
    recovery_codes_remaining: [10],
    enabled: [true],
  },
  ...{ ip: ['203.0.113.7'], user_agent: ['Mozilla/5.0'], current: [true], mfa: [true] },
  token_reused_at: [null],
  ...{
    access_token: ['EAAGexample0of0a0token0of0Meta'],
    display_name: ['Example'],
    display_phone_number: ['+1 415-555-0123'],
  },
  ...{ phone_number_id: ['106540352242922'], waba_id: ['102290129340398'], disconnected: [true] },
  ...{ quality_rating: ['green'], source: ['default', 'account', 'manual'] },
  ...{ plan: ['pay_per_success'], balance: [41.25], minimum_balance: [2], minimum: [2] },
  ...{
    trial_granted: [50],
    trial_remaining: [0],
    spent_this_hour: [1.15],
    spent: [1.15],
    cap: [25],
  },
  ...{ price: [0.05], price_per_verification: [0.05], price_per_totp_verification: [0.002] },
  ...{ default_price: [0.05], totp_price: [0.002], amount: [50], balance_after: [41.25] },
  ...{ kind: ['charge'], reference: ['charge:0192f0c1-7a3b-7c4d-8e5f-0123456789ab'] },
  checkout_url: ['https://checkout.stripe.com/c/pay/cs_live_a1b2c3'],
  ...{ period: [30], interval: ['day'], requested: [1000], accepted: [985], delivered: [969] },
  ...{ failed: [15], expired: [109], delivery_rate: [0.969], conversion_rate: [0.8741] },
  ...{ spend: [43.05], count: [1000], dropped: [0], rate: [1], step_rate: [1] },
  ...{ mean_delivery_ms: [1840], mean_verification_ms: [21300], origin: ['send'] },
  ...{ reason: [null, 'cooldown'], layer: ['origin'], dimension: ['recipient'] },
  ...{ used: [12], limit: [20], remaining: [288], window_seconds: [60], retry_after_seconds: [30] },
  ...{ operation: ['POST /v1/otp/send'], scope: ['Same recipient phone (send)'] },
  ...{ granted: [50], allowance: [250], available: [41.25], paused: [false] },
  ...{ tier: ['standard'], sustained_per_minute: [300], burst_per_10_seconds: [100] },
  ...{ hourly_limit: [18_000], credential_per_minute: [300], threshold: [0.55] },
  ...{ can_send: [true], can_request_capacity: [true], reasons: [], blocked_by: [] },
  ...{ days_to_switch: [3], low_days: [0], settled: [412], attempts: [5, 1] },
  requested_sustained_per_minute: [1000],
  requested_burst_per_10_seconds: [330],
  expected_sustained_per_minute: [600],
  expected_peak_per_minute: [900],
  business_justification: ['Our autumn campaign brings about 600 sign-ups a minute.'],
  supporting_facts: ['Conversion of the last 30 days: 87 %.'],
  ...{ number: [1], duration_ms: [84], type: ['otp.verified'], next_before: [null] },
  text: ['493027 is your verification code. For your security, do not share this code.'],
  body: ['{"id":"evt_…","type":"otp.verified","timestamp":"…","mode":"live","data":{…}}'],
  prefix: ['+20…'],
  before: [cursorOf(id)],
  ...{ version: ['0.1.0'], latency_ms: [1], connected: [12], broken: [0] },
  ...{
    code: ['493027'],
    message_id: ['otp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab'],
    expires_in: [900],
  },
};

const notYet = { delivered_at: null, verified_at: null };

/** What the data of an event holds beside the usual values of its fields, by type. */
export const eventValues: Record<string, Record<string, unknown>> = {
  'otp.sent': { ...notYet, sequence: 10 },
  'otp.delivered': { verified_at: null, sequence: 40 },
  'otp.failed': { ...notYet, failure_reason: 'not_delivered', sequence: 30 },
  'otp.expired': { verified_at: null, sequence: 60 },
  'otp.completed': { status: 'verified', latency_ms: 20_000 },
  'template.status_changed': { previous_status: 'pending' },
  'billing.trial_exhausted': { used: 50 },
  'billing.low_balance': { balance: 4.95 },
  'capacity_request.updated': { status: 'approved' },
};

/** Fields that an answer leaves out in the ordinary case, by operation. */
export const leftOut: Record<string, readonly string[]> = {
  'POST /v1/clients/login': ['mfa_required', 'mfa_token'],
};

/** Of bodies that take one of several fields, and filters nobody sets all at once: those that are shown. */
export const shownOnly: Record<string, readonly string[]> = {
  'POST /v1/clients/security/reauth': ['password'],
  'POST /v1/clients/security/mfa/disable': ['password'],
  'POST /v1/clients/security/mfa/recovery': ['password'],
  'POST /v1/totp/enroll': ['phone'],
  'POST /v1/clients/keys/rotate': [],
};

type Header = readonly [name: string, description: string, example: string];

/** How providers prove who they are, by operation. */
export const providerHeaders: Record<string, Header> = {
  'POST /v1/inbound/whatsapp': [
    'X-Hub-Signature-256',
    'sha256= and the HMAC-SHA256 of the raw body under WHATSAPP_APP_SECRET, in hex.',
    `sha256=${'5d'.repeat(32)}`,
  ],
  'POST /v1/inbound/telegram': [
    'X-Telegram-Bot-Api-Secret-Token',
    'TELEGRAM_WEBHOOK_SECRET, as setWebhook was given it.',
    'kZ0pWq7sT1vB8nC3xM5aD9fG2hJ4kL6e',
  ],
  'POST /v1/inbound/payments': [
    'Stripe-Signature',
    'Stripe’s signature of the raw body under STRIPE_WEBHOOK_SECRET.',
    `t=1795176021,v1=${'5d'.repeat(32)}`,
  ],
};

/** Answers that are no JSON, by operation. */
export const textExamples: Record<string, string> = {
  'GET /openapi.json': '{"openapi":"3.1.0","info":{"title":"Tessera","version":"1.0.0"}}',
  'GET /docs': '<!doctype html><html lang="en">…</html>',
  'GET /v1/inbound/whatsapp': '1158201444',
  'POST /v1/inbound/whatsapp': '',
  'POST /v1/inbound/telegram': '',
  'POST /v1/inbound/payments': '',
  'GET /v1/clients/otps/export':
    'message_id,phone,country,status,channel\r\notp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab,+14155550123,US,verified,whatsapp\r\n',
  'GET /v1/clients/transactions/export':
    'id,created_at,kind,amount\r\n0192f0c1-7a3b-7c4d-8e5f-0123456789ab,2026-11-20T12:00:21.000Z,charge,-0.05\r\n',
};

/** What providers post, by operation. */
export const providerBodies: Record<string, unknown> = {
  'POST /v1/inbound/whatsapp': {
    object: 'whatsapp_business_account',
    entry: [
      {
        id: '102290129340398',
        changes: [
          {
            field: 'messages',
            value: {
              statuses: [{ id: 'wamid.HBgL', status: 'delivered', timestamp: '1795176002' }],
            },
          },
        ],
      },
    ],
  },
  'POST /v1/inbound/telegram': {
    update_id: 10_000,
    message: { message_id: 1, chat: { id: 42, type: 'private' }, text: '/start kZ0p' },
  },
  'POST /v1/inbound/payments': {
    id: 'evt_1Q',
    type: 'checkout.session.completed',
    data: { object: { id: 'cs_live_a1b2c3', payment_status: 'paid' } },
  },
};

// What the documentation says of each event type, with the `data` its receiver finds.
import type { AccountEventType, EventType } from './events.ts';

/** Every type a webhook can have: those that are published, and the summary that is made of them. */
export type WebhookType = EventType | AccountEventType | 'otp.completed';

export type EventText = { about: string; data: Record<string, unknown> };

const at = (clock: string): string => `2026-11-20T12:${clock}.000Z`;

const message = (more: Record<string, unknown> = {}) => ({
  message_id: 'otp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab',
  phone: '+14155550123',
  country: 'US',
  channel: 'whatsapp',
  accepted_at: at('00:01'),
  expires_at: at('05:01'),
  delivered_at: null,
  verified_at: null,
  failure_reason: null,
  ...more,
});

const enrollment = { phone: '+14155550123', enrollment_id: '0192f0c1-7a3b-7c4d-8e5f-0123456789ab' };
const number = { phone_number_id: '106540352242922', waba_id: '102290129340398' };
const arrived = { delivered_at: at('00:02') };

/** Every type there is; a test holds it against the types the code can publish. */
export const eventTexts: Record<WebhookType, EventText> = {
  'otp.sent': { about: 'A channel took the message. It has not arrived yet.', data: message() },
  'otp.delivered': { about: 'The message arrived on a device.', data: message(arrived) },
  'otp.verified': {
    about: 'The user entered the right code.',
    data: message({ ...arrived, verified_at: at('00:21') }),
  },
  'otp.failed': {
    about:
      'No channel delivered the message; `failure_reason` says why. What was charged for it is given back.',
    data: message({ failure_reason: 'not_delivered' }),
  },
  'otp.expired': {
    about: 'Nobody entered the code in its five minutes.',
    data: message(arrived),
  },
  'otp.completed': {
    about:
      'One summary per message, behind the event that ended it: what became of it, how long it took from acceptance, and its price in USD.',
    data: message({
      ...arrived,
      ...{ verified_at: at('00:21'), status: 'verified', latency_ms: 20_000, price: 0.05 },
    }),
  },
  'telegram.linked': {
    about:
      'A recipient linked a Telegram chat: from now on codes can fall back to it. After a `deliver` that was answered CHANNEL_NOT_LINKED this is the moment to repeat it.',
    data: { channel: 'telegram', phone: '+14155550123' },
  },
  'totp.enrolled': {
    about: 'The first code of an enrollment was right: it is confirmed.',
    data: enrollment,
  },
  'totp.verified': {
    about: 'A TOTP code was right.',
    data: {
      ...enrollment,
      ...{ step: 59_839_200, price_micros: 2000, plan: 'pay_per_success' },
      attempt_id: '0192f0c2-0b1c-7d2e-9f30-0123456789ab',
    },
  },
  'totp.disabled': { about: 'The enrollment of a phone was ended.', data: enrollment },
  'whatsapp.connected': { about: 'A WhatsApp number of your own was connected.', data: number },
  'whatsapp.disconnected': {
    about: 'The own number was disconnected: sends use the shared one again.',
    data: number,
  },
  'template.status_changed': {
    about: 'WhatsApp changed the state of a template. Sends need `approved`.',
    data: { name: 'otp_code', language: 'en_US', status: 'approved', previous_status: 'pending' },
  },
  'billing.low_balance': {
    about: 'The balance fell below 5 USD. Below 2 USD sends are refused.',
    data: { balance: 4.95 },
  },
  'billing.trial_exhausted': {
    about: 'The last free verification was used.',
    data: { granted: 50, used: 50 },
  },
  'billing.plan_changed': {
    about: 'The account pays in another way now: the trial ended, or the safety floor switched it.',
    data: { from: 'trial', to: 'pay_per_success', reason: 'trial_used_up' },
  },
  'capacity_request.updated': {
    about: 'A request for more capacity was made, approved, rejected or cancelled.',
    data: { capacity_request_id: '0192f0c1-7a3b-7c4d-8e5f-0123456789ab', status: 'approved' },
  },
  'account.suspended': {
    about: 'The operator suspended the account: keys and sessions are refused.',
    data: { reason: 'Asked for by its owner.' },
  },
  'security.mfa_disabled': {
    about:
      'The second factor of the account was turned off. If that was not you, change the password.',
    data: { by: 'password' },
  },
  'webhook.test': {
    about: 'You asked for it with `POST /v1/clients/webhooks/test`.',
    data: { message: 'This is a test.' },
  },
};

// The event catalogue: every type a webhook can have, when it happens, and what its data holds. The OpenAPI document
// is made from it, and what the tests receive is checked against that.
import { actors } from '../accounts/acts.ts';
import {
  decimal,
  flag,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  type Schema,
  text,
} from '../kernel/schema.ts';
import type { AccountEventType, EventType } from '../messages/events.ts';
import { failureReasons } from '../messages/rules.ts';

export type PublicEventType = EventType | AccountEventType | 'otp.completed';

type Shape = Parameters<typeof object>[0];
export type EventKind = { summary: string; data: ReturnType<typeof object> };

const time = () => text().isoDate().example('2026-11-20T12:00:00.000Z');
const timeOrNull = () => nullable(time());
const phone = () => text().description('The recipient, E.164.').example('+14155550123');
const channel = () => oneOf('whatsapp', 'telegram');

const sequence = () =>
  integer()
    .min(0)
    .description(
      'Goes up along the course of the object the event is about: of two events of one message, or of anything else ' +
        'with an id, the one with the higher number is the later news, in whatever order they arrive.',
    )
    .example(80);

const kind = (summary: string, shape: Shape): EventKind => ({
  summary,
  data: object({ ...shape, sequence: sequence() }),
});

const messageShape = () => ({
  message_id: text()
    .description('Id of the message, as send answered it.')
    .example('otp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab'),
  phone: phone(),
  country: text().length(2).description('ISO 3166 code of the destination.').example('US'),
  channel: nullable(channel()).description(
    'The channel the news is about; null: none was reached.',
  ),
  accepted_at: timeOrNull().description('When a channel took it.'),
  expires_at: timeOrNull().description('Until when the code is right.'),
  delivered_at: timeOrNull().description('When a channel reported that it arrived.'),
  verified_at: timeOrNull().description('When the code was entered.'),
  failure_reason: nullable(oneOf(...Object.keys(failureReasons))).description(
    'Why it failed; null: it did not.',
  ),
});

const message = (summary: string): EventKind => kind(summary, messageShape());

const leg = () =>
  object({ channel: channel(), accepted_at: timeOrNull(), delivered_at: timeOrNull() });

const id = () => text().guid().example('0192f0c1-7a3b-7c4d-8e5f-0123456789ab');
const enrollment = () => ({ phone: phone(), enrollment_id: id() });
const connection = () => ({ phone_number_id: text(), waba_id: nullable(text()) });
const plan = (): Schema<string> => oneOf('trial', 'pay_per_success', 'per_message');

/** Who made a change of the account's security, and from where. */
const actor = () => ({
  by: oneOf(...actors).description(
    'session and key: a credential of the account. reset_code: a code for a forgotten password. operator: of the service.',
  ),
  credential_id: nullable(id()).description('Id of the session or key; null for the others.'),
  ip: nullable(text())
    .description('Address of the call; null: an operator.')
    .example('203.0.113.7'),
});

const keyFacts = () => ({
  key_id: id().description('Id of the key; not a secret.'),
  name: text().example('Production'),
  mode: oneOf('live', 'test'),
});

/** All of them; a type that is announced and not described here does not compile. */
export const eventCatalogue: Record<PublicEventType, EventKind> = {
  'otp.sent': message('A channel accepted the code. With a fallback there is one per channel.'),
  'otp.delivered': message('A channel reported that the code arrived.'),
  'otp.verified': message('The right code was entered.'),
  'otp.failed': message('No channel could deliver the code.'),
  'otp.expired': message('Nobody entered the code in time.'),
  'otp.completed': kind(
    'The end of a message: what became of it, how, how fast and at what cost.',
    {
      ...messageShape(),
      status: oneOf('verified', 'failed', 'expired'),
      latency_ms: nullable(integer().min(0)).description(
        'From acceptance to this end; null: the code expired, or no channel took it.',
      ),
      cost: decimal().min(0).description('What the message cost, USD.').example(0.05),
      legs: list(leg()).description('Every channel that accepted the code, in order.'),
    },
  ),
  'telegram.linked': kind('A recipient linked Telegram.', { channel: channel(), phone: phone() }),
  'totp.enrolled': kind('A phone was enrolled for codes of an authenticator app.', enrollment()),
  'totp.verified': kind('A code of an authenticator app was right.', {
    ...enrollment(),
    step: integer()
      .min(0)
      .description('The 30-second step of the code; each counts once.')
      .example(59_839_200),
    cost: decimal().min(0).description('What the verification cost, USD.').example(0.002),
    plan: nullable(plan()),
  }),
  'totp.disabled': kind('An enrollment was ended.', enrollment()),
  'whatsapp.connected': kind('An own WhatsApp number was connected.', connection()),
  'whatsapp.disconnected': kind('The own WhatsApp number was disconnected.', connection()),
  'template.status_changed': kind('The template of the own number has another status.', {
    ...{ name: text().example('otp_code'), language: text().example('en_US') },
    ...{ status: text().example('approved'), previous_status: nullable(text()) },
  }),
  'billing.low_balance': kind('The balance fell below the mark.', {
    balance: decimal().description('USD.').example(1.95),
  }),
  'billing.trial_exhausted': kind('The free verifications are used up.', {
    ...{ granted: integer().min(0).example(50), used: integer().min(0).example(50) },
  }),
  'billing.plan_changed': kind('Another plan holds from now on.', {
    ...{ from: plan(), to: plan(), reason: oneOf('trial_used_up', 'safety_floor') },
    date: optional(text().description('With safety_floor: the day (UTC) that decided.')),
    settled: optional(integer().min(0).description('Its settled messages.')),
    verified: optional(integer().min(0).description('Those of them that were verified.')),
  }),
  'capacity_request.updated': kind('A request for more capacity has another status.', {
    capacity_request_id: id(),
    status: oneOf('pending', 'approved', 'rejected', 'cancelled'),
  }),
  'account.suspended': kind('The account was suspended.', {
    reason: text().example('Reported by recipients.'),
  }),
  'security.mfa_disabled': kind('The second factor of the account was turned off.', {
    by: oneOf('code', 'password'),
  }),
  'security.recovery_codes_low': kind('Few recovery codes of the account are left.', {
    recovery_codes_remaining: integer().min(0),
  }),
  'security.key_created': kind('An API key was made, or replaced by rotation.', {
    ...keyFacts(),
    made_by_key_id: nullable(id()).description('The key that made it; null: a session did.'),
    rotated_from_key_id: nullable(id()).description(
      'The key it replaces; null: it is none’s successor.',
    ),
    ...actor(),
  }),
  'security.key_revoked': kind('An API key was ended.', {
    ...keyFacts(),
    revoked_with_key_id: nullable(id()).description(
      'The key with which it ended, since that one made it; null: it was ended itself.',
    ),
    ...actor(),
  }),
  'security.settings_changed': kind(
    'Settings of the account changed. A webhook address that was replaced hears of it, too.',
    {
      settings: list(text())
        .description('Names of what changed; not the values.')
        .example(['webhook_url']),
      ...actor(),
    },
  ),
  'security.password_changed': kind('The password of the account changed.', actor()),
  'security.phone_changed': kind(
    'The phone of the account, to which codes for a forgotten password go, changed.',
    actor(),
  ),
  'security.login': kind('Somebody logged in from where no login came from before.', {
    session_id: id(),
    mfa: flag().description('Whether a second factor was given.'),
    user_agent: text().allow('').example('Mozilla/5.0'),
    ...actor(),
  }),
  'webhook.test': kind('Somebody asked for a test.', {
    message: text().example('This is a test.'),
  }),
};

/** The envelope of a type: what is posted, byte by byte, is JSON of this shape. */
export const eventSchema = (type: PublicEventType) =>
  object({
    id: text()
      .pattern(/^evt_[0-9a-f]{32}$/)
      .description('The webhook-id header; the same in every attempt.')
      .example('evt_5f1c0e9b7a3d4c2e8b6f0a1d2c3e4f50'),
    type: oneOf(type),
    timestamp: time().description('When it happened.'),
    mode: oneOf('live', 'test').description('test: of the sandbox.'),
    data: eventCatalogue[type].data,
  });

// Events: what happened to a message, published once per change and recognisable when it comes twice.
import type { EventWire, LegWire } from '../jobs.ts';
import { derivedId } from '../kernel/ids.ts';
import type { ChannelName, Facts, Message } from './rules.ts';
import { toWire } from './wire.ts';

/** The event types of messages and links (design section 4, "Webhooks"). */
export type EventType =
  | 'otp.sent'
  | 'otp.delivered'
  | 'otp.verified'
  | 'otp.failed'
  | 'otp.expired'
  | 'telegram.linked';

/** The event types that are about an account or something of its own, and not about one message. */
export type AccountEventType =
  | 'totp.enrolled'
  | 'totp.verified'
  | 'totp.disabled'
  | 'whatsapp.connected'
  | 'whatsapp.disconnected'
  | 'template.status_changed'
  | 'billing.low_balance'
  | 'billing.trial_exhausted'
  | 'billing.plan_changed'
  | 'capacity_request.updated'
  | 'account.suspended'
  | 'security.mfa_disabled'
  | 'security.recovery_codes_low'
  | 'security.key_created'
  | 'security.key_revoked'
  | 'security.settings_changed'
  | 'security.password_changed'
  | 'security.phone_changed'
  | 'security.login'
  | 'webhook.test';

/**
 * The event that `type` happened to `message` at `at` (ms). Its id follows from message, type and channel, so that
 * a redelivered job announces the same event again and not another one.
 */
export const messageEvent = (
  type: EventType,
  message: Message,
  at: number,
  facts: Partial<Facts> & { legs?: readonly LegWire[]; codeOpen?: boolean } = {},
): EventWire => ({
  id: derivedId(message.id, type, facts.channel ?? ''),
  type,
  at,
  account_id: message.accountId,
  mode: message.mode,
  message: toWire(message),
  request_id: message.requestId,
  data: {
    channel: facts.channel ?? null,
    accepted_at: facts.acceptedAt ?? null,
    expires_at: facts.expiresAt ?? null,
    delivered_at: facts.deliveredAt ?? null,
    verified_at: facts.verifiedAt ?? null,
    failure_reason: facts.failureReason ?? null,
    // For the timeline; receivers of webhooks are not told of it.
    ...(facts.legs === undefined ? {} : { legs: facts.legs }),
    // For billing: whether the code of a message that failed may be used all the same.
    ...(facts.codeOpen === undefined ? {} : { code_open: facts.codeOpen }),
  },
});

/** The event that a recipient linked a Telegram chat; not about one message. */
export const linkedEvent = (link: {
  accountId: string;
  mode: Message['mode'];
  phone: string;
  at: number;
  linkId: string;
}): EventWire => ({
  id: derivedId(link.linkId, 'telegram.linked'),
  type: 'telegram.linked',
  at: link.at,
  account_id: link.accountId,
  mode: link.mode,
  message: null,
  request_id: link.linkId,
  data: { channel: 'telegram' satisfies ChannelName, phone: link.phone },
});

/**
 * An event about an account. `subject` names what happened so that the same happening always gives the same event
 * (a row's id, an id and a state); `data` is what the type says, in the wire's own names.
 */
export const accountEvent = (
  type: AccountEventType,
  given: {
    accountId: string;
    mode: Message['mode'];
    at: number;
    requestId: string;
    subject: string;
    data: Record<string, unknown>;
  },
): EventWire => ({
  id: derivedId(given.subject, type),
  type,
  at: given.at,
  account_id: given.accountId,
  mode: given.mode,
  message: null,
  request_id: given.requestId,
  data: given.data,
});

// One-time codes: send, deliver, verify, link and status (spec section 4).

import type { ApiApp } from '../../lib/app.ts';
import { parseIdempotencyKey, requestFingerprint } from '../../lib/idempotency/rules.ts';
import type { ErrorCode } from '../../lib/kernel/errors.ts';
import { fail, invalid } from '../../lib/kernel/errors.ts';
import { fromMessageId } from '../../lib/kernel/ids.ts';
import { personOf } from '../../lib/kernel/recipients.ts';
import { integer, nullable, object, oneOf, text } from '../../lib/kernel/schema.ts';
import type { Principal } from '../../lib/keys/rules.ts';
import { rateLimitHeaders, refusalExtras } from '../../lib/limits/answers.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import type { Tier } from '../../lib/limits/rules.ts';
import { issueLink, unlinkRecipient } from '../../lib/links/issue.ts';
import type { Origin } from '../../lib/messages/rules.ts';
import { sendOtp } from '../../lib/otp/send.ts';
import { otpStatus } from '../../lib/otp/status.ts';
import { verifyOtp } from '../../lib/otp/verify.ts';
import {
  channelName,
  code,
  failureReason,
  messageId,
  messageStatus,
  nullableTimestamp,
  phoneInput,
  seconds,
  timestamp,
  yesNo,
} from '../fields.ts';
import { route } from '../route.ts';

const tag = 'One-time codes';

/** What a send or deliver can answer beside what every call can. */
export const sendErrors: readonly ErrorCode[] = [
  'INVALID_PHONE',
  'TEMPLATE_NOT_READY',
  'CHANNEL_NOT_LINKED',
  'DELIVERY_FAILED',
  'TELEGRAM_UNAVAILABLE',
  'CENTRAL_WHATSAPP_UNSUPPORTED_REGION',
  'INTL_PRICING_NOT_CONFIGURED',
  'INTL_PRICE_BELOW_COST',
  'CENTRAL_WHATSAPP_CONNECT_REQUIRED',
  'CENTRAL_WHATSAPP_LIMIT',
  'CENTRAL_WHATSAPP_PAUSED',
  'INSUFFICIENT_CREDITS',
  'DEPOSIT_REQUIRED',
  'FREE_TRIAL_EXHAUSTED',
  'SPEND_CAP_EXCEEDED',
  'FREE_TRIAL_PAUSED',
];

const sendData = object({
  message_id: messageId(),
  status: oneOf('sent').description('Always sent: a channel took the message.'),
  expires_in: seconds().description('Seconds the code stays valid.').example(300),
  cooldown_seconds: seconds().description('Seconds until a resend is allowed.').example(30),
});

const deliverData = object({
  message_id: messageId(),
  status: oneOf('sent').description('Always sent: a channel took the message.'),
  cooldown_seconds: seconds().description('Seconds until a resend is allowed.').example(30),
});

type SendRequest = {
  principal: Principal;
  tier: Tier;
  body: { phone: string; code?: string };
  requestId: string;
  header(name: string): string | undefined;
  setHeaders(headers: Record<string, string>): void;
};

/** Reads the Idempotency-Key of a request and what it is used for. */
const onceOf = (request: SendRequest, path: string) => {
  const header = request.header('Idempotency-Key');
  if (header === undefined) return undefined;
  const key = parseIdempotencyKey(header);
  if (key === undefined) {
    const issue = 'must be 1 to 255 visible ASCII characters';
    throw invalid({ field: 'Idempotency-Key', issue });
  }
  const fingerprint = requestFingerprint({ key, method: 'POST', route: path, body: request.body });
  return { key, fingerprint };
};

const handleSend = async (app: ApiApp, request: SendRequest, origin: Origin) => {
  const { principal, tier, body, requestId } = request;
  const { data, originalRequestId } = await sendOtp(app.sends, {
    ...{ principal, tier, origin, requestId, phone: body.phone, code: body.code },
    once: onceOf(request, `/v1/otp/${origin}`),
    onWindow: (window) => request.setHeaders(rateLimitHeaders(tier, window)),
  });
  if (originalRequestId !== undefined) {
    request.setHeaders({
      'Idempotent-Replayed': 'true',
      'Original-Request-Id': originalRequestId,
    });
  }
  return data;
};

const send = route({
  ...{ method: 'POST', path: '/v1/otp/send', tag, auth: 'key', sends: true },
  about:
    'Answers once a channel took the message: WhatsApp, or Telegram when WhatsApp cannot reach the phone and its owner linked it. A new code voids the older one as soon as a channel took it. An error means that nothing was sent and nothing is charged.',
  summary: 'Make a code and send it to a phone.',
  errors: sendErrors,
  body: object({ phone: phoneInput() }),
  data: sendData,
  handle: (app, request) => handleSend(app, request, 'send'),
});

const deliver = route({
  ...{ method: 'POST', path: '/v1/otp/deliver', tag, auth: 'key', sends: true },
  about:
    'For codes that your own system made and checks, or that verify shall check. Everything else is as in send.',
  summary: 'Send a code of your own to a phone.',
  errors: sendErrors,
  body: object({ phone: phoneInput(), code: code() }),
  data: deliverData,
  handle: async (app, request) => {
    const { message_id, status, cooldown_seconds } = await handleSend(app, request, 'deliver');
    return { message_id, status, cooldown_seconds };
  },
});

const verify = route({
  ...{ method: 'POST', path: '/v1/otp/verify', tag, auth: 'key' },
  about:
    'A code is right once. Five wrong ones within 15 minutes block the phone for 15 minutes, the right code included; a resend does not reset the count. An answer of BILLING_ERROR means that the code was right.',
  summary: 'Check the code a user entered.',
  errors: ['INVALID_PHONE', 'OTP_NOT_FOUND', 'INVALID_CODE', 'TOO_MANY_ATTEMPTS', 'BILLING_ERROR'],
  body: object({ phone: phoneInput(), code: code() }),
  data: object({
    verified: yesNo().description('Always true; a code that is not right is an error.'),
  }),
  handle: async (app, { principal, tier, body }) => {
    await verifyOtp(app.verifies, { principal, tier, ...body });
    return { verified: true };
  },
});

/** Counts a call about links for its account: in a burst, and over time. */
const takeLinkCall = async (app: ApiApp, { accountId, mode }: Principal): Promise<void> => {
  const account = `${mode}:${accountId}`;
  await Promise.all([
    takeRead(app.reads, 'telegram_link_burst', account),
    takeRead(app.reads, 'telegram_link_account', account),
  ]);
};

const link = route({
  ...{ method: 'POST', path: '/v1/otp/telegram-link', tag, auth: 'key' },
  about: 'The link works once and for 15 minutes; asking again issues a fresh one.',
  summary: 'A one-tap link with which a recipient links Telegram.',
  errors: ['INVALID_PHONE', 'TELEGRAM_UNAVAILABLE'],
  body: object({ phone: phoneInput() }),
  data: object({
    telegram_bot_url: text().uri().example('https://t.me/tessera_bot?start=kZ0p'),
    expires_in: integer().description('Seconds the link is valid.').example(900),
  }),
  handle: async (app, request) => {
    const { accountId, mode } = request.principal;
    const recipient = app.recipients.ofRecipient(accountId, mode, request.body.phone);
    await takeRead(app.reads, 'telegram_link', personOf(recipient));
    await takeLinkCall(app, request.principal);
    const { url, expiresIn } = await issueLink(app.sends, {
      ...{ accountId, mode, phone: request.body.phone, requestId: request.requestId },
    });
    return { telegram_bot_url: url, expires_in: expiresIn };
  },
});

const unlink = route({
  ...{ method: 'DELETE', path: '/v1/otp/telegram-link', tag, auth: 'key' },
  summary: 'Forget the Telegram chat of a recipient.',
  errors: ['INVALID_PHONE'],
  body: object({ phone: phoneInput() }),
  data: object({ unlinked: yesNo().description('False when none was linked.') }),
  handle: async (app, { principal, body }) => {
    const { accountId, mode } = principal;
    await takeLinkCall(app, principal);
    const recipient = { accountId, mode, phone: body.phone };
    return { unlinked: await unlinkRecipient(app.sends, recipient) };
  },
});

const status = route({
  ...{ method: 'GET', path: '/v1/otp/status/{message_id}', tag, auth: 'key' },
  about:
    'Final states stay readable: verified, failed and expired are told apart, with the times of each step.',
  summary: 'Where a message stands.',
  errors: ['NOT_FOUND'],
  params: object({ message_id: messageId() }),
  data: object({
    message_id: messageId(),
    status: messageStatus(),
    channel: nullable(channelName()),
    mode: oneOf('live', 'test'),
    created_at: timestamp(),
    expires_at: nullableTimestamp(),
    delivered_at: nullableTimestamp(),
    verified_at: nullableTimestamp(),
    failure_reason: failureReason(),
    fallback_used: yesNo().description('The code went out over Telegram.'),
  }),
  handle: async (app, { principal, params }) => {
    const { accountId, mode } = principal;
    // What is counted becomes a key in Redis: a text that can be no id is not counted.
    if (fromMessageId(params.message_id) === undefined) throw fail('NOT_FOUND');
    const read = await app.reads.takeStatus(accountId, mode, params.message_id);
    if (!read.admitted) throw fail('RATE_LIMIT_EXCEEDED', refusalExtras(read.refusal));
    return otpStatus(app.sends, principal, params.message_id);
  },
});

export const otpRoutes = [send, deliver, verify, link, unlink, status];

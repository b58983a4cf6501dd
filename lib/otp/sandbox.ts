// The sandbox: numbers that make a test key meet each outcome a real recipient could bring about.
import type { ChannelResult } from '../channels/channel.ts';
import type { ErrorCode, ErrorExtras } from '../kernel/errors.ts';
import type { ChannelName } from '../messages/rules.ts';

/** Where an outcome arises: before the send is published, at a channel, at the verify, or with TOTP alone. */
type Stage = 'admission' | 'channel' | 'verify' | 'totp';

export type MagicNumber = { phone: string; stage: Stage; code: ErrorCode; about: string };

const magic = (last4: string, stage: Stage, code: ErrorCode, about: string): MagicNumber => ({
  phone: `+1555010${last4}`,
  stage,
  code,
  about,
});

/** Every error a send, deliver or verify can give, by a number that produces it; the docs print this table. */
export const magicNumbers: readonly MagicNumber[] = [
  magic('4001', 'admission', 'INVALID_PHONE', 'A number that cannot be reached.'),
  magic(
    '4002',
    'admission',
    'CENTRAL_WHATSAPP_UNSUPPORTED_REGION',
    'A destination the shared number does not serve.',
  ),
  magic('4003', 'admission', 'INTL_PRICING_NOT_CONFIGURED', 'A destination without a price.'),
  magic('4004', 'admission', 'INTL_PRICE_BELOW_COST', 'A price below the cost of delivery.'),
  magic('4021', 'admission', 'INSUFFICIENT_CREDITS', 'The balance is too low.'),
  magic('4022', 'admission', 'DEPOSIT_REQUIRED', 'No deposit was ever made.'),
  magic('4023', 'admission', 'FREE_TRIAL_EXHAUSTED', 'The free verifications are used up.'),
  magic(
    '4031',
    'admission',
    'CENTRAL_WHATSAPP_CONNECT_REQUIRED',
    'The allowance on the shared number is used up.',
  ),
  magic('4091', 'channel', 'CHANNEL_NOT_LINKED', 'Not on WhatsApp, and Telegram is not linked.'),
  magic('4092', 'channel', 'TEMPLATE_NOT_READY', 'The template is not approved yet.'),
  magic(
    '4093',
    'admission',
    'IDEMPOTENCY_KEY_IN_PROGRESS',
    'The same key is still being processed.',
  ),
  magic('4221', 'admission', 'IDEMPOTENCY_KEY_REUSED', 'The key was used with another request.'),
  magic('4291', 'admission', 'RATE_LIMIT_EXCEEDED', 'A limit is reached.'),
  magic('4292', 'verify', 'TOO_MANY_ATTEMPTS', 'Too many failed verifications.'),
  magic(
    '4293',
    'admission',
    'CENTRAL_WHATSAPP_LIMIT',
    'The hourly limit on the shared number is reached.',
  ),
  magic('4294', 'admission', 'SPEND_CAP_EXCEEDED', 'The hourly spend cap is reached.'),
  magic('4005', 'verify', 'OTP_NOT_FOUND', 'Every code for this number has expired.'),
  magic('4006', 'verify', 'INVALID_CODE', 'No code is the right one for this number.'),
  magic('5001', 'channel', 'DELIVERY_FAILED', 'No channel delivers.'),
  magic('5002', 'verify', 'BILLING_ERROR', 'The code is right, the charge fails.'),
  magic('5003', 'admission', 'INTERNAL_ERROR', 'A failure on our side.'),
  magic('5031', 'channel', 'TELEGRAM_UNAVAILABLE', 'Telegram was the only way and is down.'),
  magic('5032', 'channel', 'CENTRAL_WHATSAPP_PAUSED', 'The shared number is paused.'),
  magic('5033', 'admission', 'FREE_TRIAL_PAUSED', 'The free trial is paused.'),
  magic('5035', 'totp', 'TOTP_NOT_CONFIGURED', 'TOTP is not available at the moment.'),
  magic('5034', 'admission', 'SERVICE_UNAVAILABLE', 'The service takes no sends at the moment.'),
];

/** A number that WhatsApp does not reach and that has linked Telegram: the code goes out there. */
export const sandboxLinkedPhone = '+15550102000';

const byPhone = new Map(magicNumbers.map((entry) => [entry.phone, entry]));

/** The error a number stands for at a stage. */
export const magicError = (phone: string, stage: Stage): ErrorCode | undefined => {
  const entry = byPhone.get(phone);
  return entry?.stage === stage ? entry.code : undefined;
};

// What a send and a TOTP verification have in common: both are limited and paid for.
const ofTotpVerify = new Set<ErrorCode>([
  ...(['INSUFFICIENT_CREDITS', 'DEPOSIT_REQUIRED', 'SPEND_CAP_EXCEEDED'] as const),
  ...(['TOO_MANY_ATTEMPTS', 'BILLING_ERROR'] as const),
]);
const ofTotp = new Set<ErrorCode>([
  ...(['RATE_LIMIT_EXCEEDED', 'INTERNAL_ERROR', 'SERVICE_UNAVAILABLE'] as const),
]);
const ofTotpEnroll = new Set<ErrorCode>(['INVALID_PHONE']);

/** The error a number stands for in a call of TOTP. */
export const totpMagic = (
  phone: string,
  operation: 'enroll' | 'verify' | 'disable',
): ErrorCode | undefined => {
  const entry = byPhone.get(phone);
  if (!entry) return undefined;
  const { code, stage } = entry;
  const applies =
    ofTotp.has(code) ||
    (stage === 'totp' && operation !== 'disable') ||
    (operation === 'verify' && ofTotpVerify.has(code)) ||
    (operation === 'enroll' && ofTotpEnroll.has(code));
  return applies ? code : undefined;
};

const waitSeconds = 30;

/** The members an error of the sandbox carries: those the real one would. */
export const magicExtras = (code: ErrorCode, now: number): ErrorExtras => {
  if (code === 'INVALID_CODE') return { attempts_remaining: 4 };
  const limited = code === 'RATE_LIMIT_EXCEEDED' || code === 'TOO_MANY_ATTEMPTS';
  const waits =
    limited || /LIMIT|CAP|PAUSED|UNAVAILABLE|IN_PROGRESS|TOTP_NOT_CONFIGURED/.test(code);
  if (!waits) return {};
  const wait = { retry_after_seconds: waitSeconds };
  if (!limited) return wait;
  return {
    ...wait,
    reason: 'sandbox',
    layer: 'origin',
    dimension: 'recipient',
    reset_at: new Date(now + waitSeconds * 1000).toISOString(),
    window_seconds: 600,
    limit: 3,
  };
};

const accepted: ChannelResult = { kind: 'accepted', providerId: 'sandbox' };

/** What a channel answers in the sandbox; nothing leaves the machine. */
export const sandboxResult = (phone: string, channel: ChannelName): ChannelResult => {
  const refused = (refusal: 'unreachable' | 'template' | 'broken' | 'bug'): ChannelResult => ({
    kind: 'refused',
    refusal,
    code: 0,
  });
  if (phone === sandboxLinkedPhone)
    return channel === 'telegram' ? accepted : refused('unreachable');
  switch (magicError(phone, 'channel')) {
    case 'CHANNEL_NOT_LINKED':
      return refused('unreachable');
    case 'TEMPLATE_NOT_READY':
      return refused('template');
    case 'CENTRAL_WHATSAPP_PAUSED':
      return refused('broken');
    case 'TELEGRAM_UNAVAILABLE':
      return channel === 'telegram' ? refused('broken') : refused('unreachable');
    case 'DELIVERY_FAILED':
      return refused('bug');
    default:
      return accepted;
  }
};

/** Whether a recipient of the sandbox has linked Telegram. */
export const isSandboxLinked = (phone: string): boolean =>
  phone === sandboxLinkedPhone || magicError(phone, 'channel') === 'TELEGRAM_UNAVAILABLE';

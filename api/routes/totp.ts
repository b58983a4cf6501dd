// TOTP for authenticator apps: enroll, verify, disable, and the log (spec section 4).
import { flag, integer, nullable, object, oneOf, optional, text } from '../../lib/kernel/schema.ts';
import { readableMode } from '../../lib/keys/rights.ts';
import type { Principal } from '../../lib/keys/rules.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { disableTotp, enrollTotp, type TotpCommand } from '../../lib/totp/enroll.ts';
import { listTotpLog } from '../../lib/totp/log.ts';
import { refuseMagic } from '../../lib/totp/sandbox.ts';
import { verifyTotp } from '../../lib/totp/verify.ts';
import { code, listQuery, mode, page, phone, phoneInput, timestamp } from '../fields.ts';
import { route } from '../route.ts';

const tag = 'TOTP';

type Call = { principal: Principal; body: { phone: string }; requestId: string };

const commandOf = ({ principal, body, requestId }: Call): TotpCommand => {
  const { accountId, mode: keyMode, account } = principal;
  return { account, subject: { accountId, mode: keyMode, phone: body.phone }, requestId };
};

const enroll = route({
  ...{ method: 'POST', path: '/v1/totp/enroll', tag, auth: 'key' },
  about:
    'Show the QR code, or the secret as text, and let the user enter the first code: the enrollment counts once a code of it was verified. The secret is told this once.',
  summary: 'A secret for an authenticator app, as text, address and QR code.',
  errors: ['INVALID_PHONE', 'ALREADY_ENROLLED', 'TOTP_NOT_CONFIGURED'],
  body: object({
    phone: phoneInput(),
    replace: optional(flag().description('Replaces a confirmed enrollment; its secret is void.')),
  }),
  data: object({
    secret: text().description('Shared secret in base 32.'),
    otpauth_url: text().description('What an authenticator app reads.'),
    qr_code: text().description('The address as a PNG data URI.'),
    already_enrolled: flag().description('Whether a confirmed enrollment was replaced.'),
  }),
  handle: async (app, request) => {
    const command = commandOf(request);
    refuseMagic(command.subject, 'enroll', app.clock.now());
    await takeRead(app.reads, 'totp_change', command.account.id);
    const enrolled = await enrollTotp(app, command, request.body.replace ?? false);
    return {
      ...{ secret: enrolled.secret, otpauth_url: enrolled.url, qr_code: enrolled.qrCode },
      already_enrolled: enrolled.alreadyEnrolled,
    };
  },
});

const verify = route({
  ...{ method: 'POST', path: '/v1/totp/verify', tag, auth: 'key' },
  about:
    'The codes of the step before and after are right, too, so that a clock may be half a minute off. A wrong code is no error here but verified: false. Charged when verified.',
  summary: 'Checks a code of the app. A code counts once; the first right one confirms.',
  errors: [
    ...(['INVALID_PHONE', 'TOTP_NOT_ENROLLED'] as const),
    ...(['TOO_MANY_ATTEMPTS', 'TOTP_NOT_CONFIGURED'] as const),
    ...(['INSUFFICIENT_CREDITS', 'DEPOSIT_REQUIRED', 'FREE_TRIAL_EXHAUSTED'] as const),
    ...(['FREE_TRIAL_PAUSED', 'SPEND_CAP_EXCEEDED', 'BILLING_ERROR'] as const),
  ],
  body: object({ phone: phoneInput(), code: code() }),
  data: object({
    verified: flag().description('Whether the code was right and not used before.'),
    attempts_remaining: integer().min(0).max(5).description('Wrong codes before the block.'),
    first_confirm: flag().description('Whether this call confirmed a new enrollment.'),
  }),
  handle: async (app, request) => {
    const command = commandOf(request);
    refuseMagic(command.subject, 'verify', app.clock.now());
    await takeRead(app.reads, 'totp_verify', request.principal.keyId);
    const verified = await verifyTotp(app, { ...command, code: request.body.code });
    return {
      verified: verified.verified,
      attempts_remaining: verified.attemptsRemaining,
      first_confirm: verified.firstConfirm,
    };
  },
});

const disable = route({
  ...{ method: 'POST', path: '/v1/totp/disable', tag, auth: 'key' },
  summary: 'Ends the enrollment of a phone; the same whether or not there is one.',
  errors: ['INVALID_PHONE'],
  body: object({ phone: phoneInput() }),
  data: object({ disabled: flag().description('Always true.') }),
  handle: async (app, request) => {
    const command = commandOf(request);
    refuseMagic(command.subject, 'disable', app.clock.now());
    await takeRead(app.reads, 'totp_change', command.account.id);
    await disableTotp(app, command);
    return { disabled: true };
  },
});

const log = route({
  ...{ method: 'GET', path: '/v1/clients/totp/log', tag, auth: 'account' },
  summary: 'Every verification of a TOTP code, newest first.',
  query: object({
    ...listQuery(100),
    status: optional(oneOf('verified', 'failed').description('Only these.')),
    mode: optional(mode().description('Only these; a key reads its own mode alone.')),
  }),
  data: page(
    object({
      id: text().guid(),
      phone: phone(),
      status: oneOf('verified', 'failed'),
      reason: nullable(oneOf('wrong_code', 'used_code', 'blocked')).description('Why it failed.'),
      mode: mode(),
      created_at: timestamp(),
    }),
  ),
  handle: async (app, { account, keyMode, query }) => {
    const filter = { ...query, mode: readableMode(keyMode, query.mode) };
    await takeRead(app.reads, 'read', account.id);
    const { entries, nextBefore } = await listTotpLog(app, account.id, filter);
    const items = entries.map(({ id, at, subject, status, reason }) => ({
      ...{ id, phone: subject.phone, status, reason, mode: subject.mode },
      created_at: new Date(at).toISOString(),
    }));
    return { items, next_before: nextBefore };
  },
});

export const totpRoutes = [enroll, verify, disable, log];

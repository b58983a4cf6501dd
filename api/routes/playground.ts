// Trying it out without an account (spec section 8: the playground's rows).
import { integer, nullable, object, oneOf, optional, text } from '../../lib/kernel/schema.ts';
import { sendFromPlayground, verifyFromPlayground } from '../../lib/playground/try.ts';
import { channelName, code, messageId, phoneInput, yesNo } from '../fields.ts';
import { route } from '../route.ts';
import { sendErrors } from './otp.ts';

const tag = 'Playground';

const send = route({
  ...{ method: 'POST', path: '/v1/playground/send', tag, auth: 'none' },
  summary: 'Send a code without an account.',
  about:
    'In the sandbox, unless the operator switched real delivery on: nothing goes out, and preview is what the phone would show. Magic numbers give their errors here too.',
  errors: [
    ...(['NOT_FOUND', 'RATE_LIMIT_EXCEEDED'] as const),
    ...(['IDEMPOTENCY_KEY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED'] as const),
    ...sendErrors,
  ],
  body: object({
    phone: phoneInput(),
    turnstile_token: optional(
      text().max(4096).description('Token of the bot check, where it is configured.'),
    ),
  }),
  data: object({
    message_id: messageId(),
    status: oneOf('sent').description('Always sent: a channel took the message.'),
    expires_in: integer().min(0).description('Seconds the code stays valid.').example(300),
    cooldown_seconds: integer().min(0).description('Seconds until the next try.').example(60),
    delivery: oneOf('sandbox', 'live').description('Whether a real message went out.'),
    preview: nullable(
      object({
        channel: channelName(),
        text: text().description('What the phone would show.'),
        code: code(),
      }),
    ).description('Null when a real phone shows it.'),
  }),
  handle: (app, { body, visitor, requestId }) => {
    const { ip, source } = visitor();
    const { phone: to, turnstile_token: turnstileToken } = body;
    return sendFromPlayground(app, { phone: to, ip, source, turnstileToken, requestId });
  },
});

const verify = route({
  ...{ method: 'POST', path: '/v1/playground/verify', tag, auth: 'none' },
  summary: 'Check a code that the playground sent.',
  errors: [
    ...(['NOT_FOUND', 'RATE_LIMIT_EXCEEDED', 'INVALID_PHONE'] as const),
    ...(['OTP_NOT_FOUND', 'INVALID_CODE'] as const),
    ...(['TOO_MANY_ATTEMPTS', 'BILLING_ERROR'] as const),
  ],
  body: object({ phone: phoneInput(), code: code() }),
  data: object({ verified: yesNo().description('Always true; a wrong code is an error.') }),
  handle: async (app, { body, visitor }) => {
    await verifyFromPlayground(app, { ...body, source: visitor().source });
    return { verified: true };
  },
});

export const playgroundRoutes = [send, verify];

// What every operation of the OpenAPI document shares: credentials, headers, headings and the error envelope.
import { errorCatalogue } from '../lib/kernel/errors.ts';

type Json = Record<string, unknown>;

const bearer = (description: string): Json => ({ type: 'http', scheme: 'bearer', description });

/** How a caller says who it is. */
export const securitySchemes = {
  apiKey: bearer('An API key: sk_live_… or sk_test_…'),
  session: bearer('The session_token of a login: sess_…'),
  refreshToken: bearer('The refresh_token of a login or of the last refresh: rt_…'),
  mfaToken: bearer('The mfa_token of a login that wants a second factor: mfa_…'),
};

/** The headers of every answer, of answers to an account, and of those that say to wait. */
export const requestIdHeader = {
  'X-Request-Id': { description: 'Id of this request.', schema: { type: 'string' } },
};
export const limitHeaders = {
  'RateLimit-Policy': {
    description: 'The send allowances of the account.',
    schema: { type: 'string' },
  },
  'X-Service-Rate-Tier': {
    description: 'The tier of the account.',
    schema: { type: 'string', enum: ['standard', 'tier-1000', 'tier-5000', 'custom'] },
  },
};
export const retryHeader = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 1 } },
};

/** What each heading of the reference is about. */
export const tagTexts: Record<string, string> = {
  Health: 'Whether the service can send and how its channels are. No credential needed.',
  'One-time codes':
    'Sending a code, checking it, and the link with which a recipient adds Telegram.',
  TOTP: 'Codes of authenticator apps: enroll a phone, verify its codes, end it.',
  Playground: 'Trying it out without an account.',
  Account: 'Registering, logging in and out, passwords, profile and settings.',
  'API keys': 'Making, rotating and revoking keys.',
  Analytics: 'How many codes went out, arrived and were entered.',
  Logs: 'Messages, one by one, and as CSV.',
  'Limits and capacity': 'What the account may send, and how to ask for more.',
  Billing: 'Balance, prices, deposits and every movement of the balance.',
  Webhooks: 'Deliveries of events to your own server: attempts, repeats, tests.',
  'Account security': 'The second factor of the account, and its open sessions.',
  'Own WhatsApp number': 'Sending from a WhatsApp number of your own, with a template of your own.',
  'Inbound provider calls': 'What WhatsApp, Telegram and Stripe call. Not for customers.',
  About: 'The API about itself.',
};

const string = (description: string, more: Json = {}): Json => ({
  type: 'string',
  description,
  ...more,
});
const integer = (description: string, more: Json = {}): Json => ({
  type: 'integer',
  description,
  ...more,
});

/** The error object of spec section 7, with the members of ours. */
export const errorSchema: Json = {
  type: 'object',
  required: ['error'],
  additionalProperties: false,
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: string('Stable and machine-readable.', { enum: Object.keys(errorCatalogue) }),
        message: string('For people; may change.'),
        request_id: string('Id of the request.'),
        reason: string('Why the limit refused.'),
        layer: string('Where the limit is.', { enum: ['edge', 'origin'] }),
        dimension: string('What the limit counts.'),
        retry_after_seconds: integer('Seconds to wait.', { minimum: 1, maximum: 86400 }),
        reset_at: string('When the limit has room again, in UTC.', { format: 'date-time' }),
        window_seconds: integer('Window of the limit.', { minimum: 1, maximum: 86400 }),
        limit: integer('What the limit allows in its window.', { minimum: 1 }),
        telegram_bot_url: string('Only with CHANNEL_NOT_LINKED.', { format: 'uri' }),
        attempts_remaining: integer('Only with INVALID_CODE.', { minimum: 0, maximum: 4 }),
        details: {
          type: 'array',
          description:
            'Only with VALIDATION_ERROR, or with INVALID_PHONE for a national prefix: what is wrong, by field.',
          items: {
            type: 'object',
            required: ['field', 'issue'],
            properties: { field: { type: 'string' }, issue: { type: 'string' } },
          },
        },
      },
    },
  },
};

// The error catalogue: every code an answer can carry, with its status, its sentence and whether a retry helps.

/** yes: repeat as it is; after: wait as told first; no: something must change before. */
export type Retry = 'yes' | 'no' | 'after';

export type ErrorEntry = { status: number; message: string; retry: Retry };

const entry = (status: number, retry: Retry, message: string): ErrorEntry => ({
  status,
  retry,
  message,
});

/** Spec section 7 in its order, then the codes of ours (design section 4). */
export const errorCatalogue = {
  VALIDATION_ERROR: entry(400, 'no', 'The request is not valid. See details.'),
  INVALID_API_KEY: entry(
    401,
    'no',
    'The Authorization header is missing or the API key is not valid.',
  ),
  ACCOUNT_SUSPENDED: entry(401, 'no', 'This account is suspended.'),
  NOT_FOUND: entry(404, 'no', 'There is no such resource.'),
  RATE_LIMIT_EXCEEDED: entry(429, 'after', 'Too many requests. Wait before trying again.'),
  INTERNAL_ERROR: entry(500, 'yes', 'Something went wrong on our side. It is safe to retry.'),
  INVALID_PHONE: entry(400, 'no', 'This phone number is not valid or cannot be reached here.'),
  OTP_NOT_FOUND: entry(
    400,
    'no',
    'The code expired, was already used, or was never sent to this phone.',
  ),
  IDEMPOTENCY_KEY_IN_PROGRESS: entry(
    409,
    'after',
    'A request with this Idempotency-Key is still being processed.',
  ),
  TEMPLATE_NOT_READY: entry(
    409,
    'no',
    'The message template is not approved on the sending number yet.',
  ),
  CHANNEL_NOT_LINKED: entry(
    409,
    'no',
    'The recipient cannot be reached on WhatsApp and has not linked Telegram. Nothing was delivered.',
  ),
  TOO_MANY_ATTEMPTS: entry(
    429,
    'after',
    'Too many failed verifications for this phone. Wait before trying again.',
  ),
  DELIVERY_FAILED: entry(500, 'yes', 'No channel delivered the code. It is safe to retry.'),
  TELEGRAM_UNAVAILABLE: entry(503, 'after', 'Telegram is not available at the moment.'),
  CENTRAL_WHATSAPP_UNSUPPORTED_REGION: entry(
    400,
    'no',
    'The shared sending number does not serve this destination. Connect your own number.',
  ),
  INTL_PRICING_NOT_CONFIGURED: entry(
    400,
    'no',
    'No price is configured for this destination on your account.',
  ),
  INTL_PRICE_BELOW_COST: entry(
    400,
    'no',
    'The price configured for this destination is below its delivery cost. The send was held.',
  ),
  CENTRAL_WHATSAPP_CONNECT_REQUIRED: entry(
    403,
    'no',
    'Your allowance on the shared sending number is used up. Connect your own number.',
  ),
  CENTRAL_WHATSAPP_LIMIT: entry(
    429,
    'after',
    'The hourly limit on the shared sending number is reached.',
  ),
  CENTRAL_WHATSAPP_PAUSED: entry(
    503,
    'after',
    'The shared sending number is paused. A connected number of your own is not affected.',
  ),
  TOTP_NOT_ENROLLED: entry(400, 'no', 'This phone has no active TOTP enrollment.'),
  ALREADY_ENROLLED: entry(
    409,
    'no',
    'This phone has a confirmed enrollment. Pass replace: true to replace it.',
  ),
  TOTP_NOT_CONFIGURED: entry(503, 'after', 'TOTP is not available at the moment.'),
  INSUFFICIENT_CREDITS: entry(402, 'no', 'The balance is below the amount required.'),
  DEPOSIT_REQUIRED: entry(402, 'no', 'This account has never made a deposit.'),
  FREE_TRIAL_EXHAUSTED: entry(402, 'no', 'The free verifications of this account are used up.'),
  SPEND_CAP_EXCEEDED: entry(429, 'after', 'The hourly spend cap is reached. It resets by itself.'),
  BILLING_ERROR: entry(
    500,
    'no',
    'The verification succeeded and stands, but it could not be billed yet.',
  ),
  FREE_TRIAL_PAUSED: entry(503, 'after', 'The free trial is paused at the moment.'),

  INVALID_CODE: entry(400, 'no', 'The code is not correct.'),
  INVALID_SESSION: entry(401, 'no', 'The session is missing, expired or revoked.'),
  INVALID_CREDENTIALS: entry(401, 'no', 'The credentials are not correct.'),
  TURNSTILE_REQUIRED: entry(
    403,
    'no',
    'Too many failures for this e-mail address. Repeat the call with a turnstile_token.',
  ),
  KEY_MANAGEMENT_DISABLED: entry(
    403,
    'no',
    'This account does not let its API keys change it. Use a session.',
  ),
  REAUTH_REQUIRED: entry(403, 'no', 'Confirm your password or a code first.'),
  EMAIL_TAKEN: entry(409, 'no', 'An account with this e-mail address exists.'),
  CAPACITY_REQUEST_PENDING: entry(
    409,
    'no',
    'A capacity request of this account is pending already.',
  ),
  IDEMPOTENCY_KEY_REUSED: entry(
    422,
    'no',
    'This Idempotency-Key was used with a different request.',
  ),
  METHOD_NOT_ALLOWED: entry(
    405,
    'no',
    'This path does not support the method. See the Allow header.',
  ),
  PAYLOAD_TOO_LARGE: entry(413, 'no', 'The request body is larger than 64 KiB.'),
  UNSUPPORTED_MEDIA_TYPE: entry(415, 'no', 'The request body must be application/json.'),
  SERVICE_UNAVAILABLE: entry(
    503,
    'after',
    'The service cannot take this request at the moment. Nothing was done.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

/** One thing that is wrong with one field, for VALIDATION_ERROR. */
export type FieldIssue = { field: string; issue: string };

/** The limit family of spec section 7; window and limit are left out where no window applies. */
export type LimitExtras = {
  reason: string;
  layer: 'edge' | 'origin';
  dimension: string;
  retry_after_seconds: number;
  reset_at: string;
  window_seconds?: number;
  limit?: number;
};

export type ErrorExtras = Partial<LimitExtras> & {
  telegram_bot_url?: string;
  attempts_remaining?: number;
  details?: FieldIssue[];
};

/** An error that is meant for the caller: a code of the catalogue; `cause` is for the log alone. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(
    code: ErrorCode,
    extras: ErrorExtras = {},
    options?: { cause?: unknown; message?: string },
  ) {
    super(options?.message ?? errorCatalogue[code].message, { cause: options?.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.extras = extras;
  }
}

/** Makes the error for `code`; codes that say "wait" get a Retry-After from `retry_after_seconds`. */
export const fail = (
  code: ErrorCode,
  extras?: ErrorExtras,
  options?: { cause?: unknown; message?: string },
): ServiceError => new ServiceError(code, extras, options);

/** A VALIDATION_ERROR about the given fields. */
export const invalid = (...details: FieldIssue[]): ServiceError =>
  fail('VALIDATION_ERROR', { details });

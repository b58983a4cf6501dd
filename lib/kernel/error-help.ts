// What the documentation says of each error code: what causes it, what to do, and how to meet it without a magic number.
import type { ErrorCode } from './errors.ts';

export type ErrorHelp = {
  /** Why it happens. */
  cause: string;
  /** What the caller does about it. */
  fix: string;
  /** How to bring it about with a test key, where no magic number does. */
  provoke?: string;
};

/** Every code of the catalogue, in its order; a test holds them together. Texts are Markdown. */
export const errorHelp: Record<ErrorCode, ErrorHelp> = {
  VALIDATION_ERROR: {
    cause:
      'The body, a path parameter or a query parameter breaks its rules: a required field is missing, a field nobody knows is there, a phone is not E.164, a name or note holds control characters or ones that reverse the direction of a text, the JSON cannot be parsed; or the request is no sound HTTP, without a Host header for example.',
    fix: 'Read `details`: one entry per field, with what is allowed. Nothing was done and nothing was counted as a send. Correct the request; the same one will fail again.',
    provoke: 'Send `{"phone": "0123"}`.',
  },
  INVALID_API_KEY: {
    cause:
      'There is no `Authorization: Bearer …` header, the key is mistyped (keys carry a checksum), it was revoked, or its 24 hours after a rotation are over.',
    fix: 'Check that the whole key arrives, beginning with `sk_live_` or `sk_test_`. List keys with `GET /v1/clients/keys` in a session, and make a new one when in doubt.',
    provoke: 'Leave the header out.',
  },
  ACCOUNT_SUSPENDED: {
    cause:
      'The operator of this service suspended the account. All its keys and sessions are refused within a second.',
    fix: 'Ask the operator. Keys work again as they are once the account is reinstated; sessions have to be opened anew.',
    provoke: 'It cannot be provoked with a test key; the shape is that of `INVALID_API_KEY`.',
  },
  NOT_FOUND: {
    cause:
      'The path does not exist, or the resource does not, or it belongs to another account or to the other mode (a live key does not see test messages).',
    fix: 'Check the id and the kind of key. What belongs to others is told from what does not exist by nobody.',
    provoke: 'Ask for the status of `otp_0192f0c1-7a3b-7c4d-8e5f-0123456789ab`.',
  },
  RATE_LIMIT_EXCEEDED: {
    cause:
      'One of the [limits](/docs/limits) refused the request. `dimension` says what is counted, `reason` why, `limit` and `window_seconds` the numbers. If several limits refuse, the one with the longest wait is reported.',
    fix: 'Wait `retry_after_seconds` (also in `Retry-After`), then repeat. The refused request took nothing from any send limit, sent nothing and cost nothing. With the reason `fraud_protection` waiting is not enough. `dimension` `recipient_prefix`: hardly any code to numbers that begin like this one is ever entered. `account`: messages of the last 24 hours that nobody verified cost the service as much as they may (`allowances.unpaid_exposure` of `GET /v1/clients/limits`); codes that are verified make room at once.',
  },
  INTERNAL_ERROR: {
    cause:
      'A mistake of this service, or one of its databases did not answer. It is logged with the `request_id` of the answer.',
    fix: 'Repeat the request, with the same `Idempotency-Key` if it was a send. After a verify ask `GET /v1/otp/status/{message_id}` first: a right code may have been used up, and its status is `verified` then. Tell the operator the `request_id` if it stays.',
  },
  INVALID_PHONE: {
    cause:
      'The number has the form of E.164 but cannot exist, is of a kind that receives no messages or only costs (premium rate, shared cost, pager, voicemail), or has a national prefix after its country code (`+44 0 7911…`, `+1 1 415…`).',
    fix: 'For a national prefix, `message` and `details` name the right form: send that. Otherwise ask the user for another number. Nothing was sent.',
  },
  OTP_NOT_FOUND: {
    cause:
      'There is no code for this phone that could still be right: none was sent with this kind of key, its 5 minutes are over, it was used already, or the message failed.',
    fix: 'Send a new code. `GET /v1/otp/status/{message_id}` tells expired, verified and failed apart.',
  },
  IDEMPOTENCY_KEY_IN_PROGRESS: {
    cause:
      'A request with this `Idempotency-Key` is being processed at this moment, for example the one whose answer you did not wait for.',
    fix: 'Wait a second and repeat with the same key: you get the answer of the first request. If its process died, the key is free after 30 seconds and the repeat goes on where it ended.',
  },
  TEMPLATE_NOT_READY: {
    cause:
      'WhatsApp has not approved (or has paused or rejected) the message template on the sending number, and the recipient has not linked Telegram.',
    fix: 'With an [own number](/docs/whatsapp): `POST /v1/clients/waba/template/check` shows the state, `…/template/create` makes it. On the shared number tell the operator. The event `template.status_changed` says when it is approved.',
  },
  CHANNEL_NOT_LINKED: {
    cause:
      'WhatsApp cannot reach this phone, and its owner has not linked Telegram. Nothing was delivered and nothing is charged.',
    fix: 'Show the recipient `telegram_bot_url` as a button or QR code. Once they pressed Start and shared their number, a code made by `send` arrives there by itself; after `deliver` repeat the call with the same code. The link works once and for 15 minutes; [asking again](/docs/resend-and-fallback) is safe.',
  },
  TOO_MANY_ATTEMPTS: {
    cause:
      'Five wrong codes were entered for this phone within 15 minutes, in your account. One-time codes and TOTP are counted apart.',
    fix: 'Wait `retry_after_seconds`. Until then the right code is refused, too, and sending a new one does not end the block. Other accounts are not affected, and cannot bring it about.',
  },
  DELIVERY_FAILED: {
    cause:
      'No channel took the message in time: the provider failed, or no worker got to it before the deadline.',
    fix: 'Repeat it, best with the same `Idempotency-Key`. Nothing more will be sent for this request. Where WhatsApp never answered, the message may be out: the answer says so, the code can be used if it arrives, its price stays held until it has ended, and the same key answers `IDEMPOTENCY_KEY_IN_PROGRESS` until then, so that no second one goes out.',
  },
  TELEGRAM_UNAVAILABLE: {
    cause:
      'Telegram was the only way to this recipient and does not answer, or this service has no bot.',
    fix: 'Wait as told and repeat. `GET /health/channels` shows how the channel is.',
  },
  CENTRAL_WHATSAPP_UNSUPPORTED_REGION: {
    cause: 'The shared sending number does not serve the country of this phone.',
    fix: '[Connect a WhatsApp number of your own](/docs/whatsapp): then this rule does not apply.',
  },
  INTL_PRICING_NOT_CONFIGURED: {
    cause:
      'There is no price for the country of this phone, neither for your account nor for the service.',
    fix: 'Ask the operator for a price. `GET /v1/clients/pricing` lists those there are.',
  },
  INTL_PRICE_BELOW_COST: {
    cause:
      'The price set for this country is lower than what delivery costs, so the send was held rather than made at a loss.',
    fix: 'Ask the operator to set the price right. Nothing was sent.',
  },
  CENTRAL_WHATSAPP_CONNECT_REQUIRED: {
    cause:
      'An account that never made a deposit may have a few unverified messages on the shared number, and more for each one that is verified; these are used up. `allowances.shared_number` of `GET /v1/clients/limits` has the numbers.',
    fix: 'Verify codes that are open: each earns more. Or make a [deposit](/docs/pricing), or [connect a number of your own](/docs/whatsapp).',
  },
  CENTRAL_WHATSAPP_LIMIT: {
    cause: 'The account sent as much on the shared number as it may in one UTC hour.',
    fix: 'Wait until the next full hour (`retry_after_seconds`), or connect a number of your own.',
  },
  CENTRAL_WHATSAPP_PAUSED: {
    cause:
      'The shared number is paused, for your account or for everybody: by the operator, or because WhatsApp does not take its messages.',
    fix: 'Repeat later. A connected number of your own is not affected.',
  },
  TOTP_NOT_ENROLLED: {
    cause:
      'There is no enrollment for this phone that could be verified: it never had one, it was disabled, or it was made with the other kind of key.',
    fix: 'Enroll the phone first: `POST /v1/totp/enroll`.',
    provoke: 'Verify a code for a phone that never was enrolled.',
  },
  ALREADY_ENROLLED: {
    cause:
      'The phone has a confirmed enrollment; a new secret would lock its owner out of the app they use now.',
    fix: 'Pass `replace: true` when the owner asked for it, for example with a new phone. For the second factor of your own account: turn it off first.',
    provoke: 'Enroll, verify one code of the demo secret, and enroll again.',
  },
  TOTP_NOT_CONFIGURED: {
    cause:
      'The operator has not set up TOTP (`TOTP_KEYS` is empty), or it cannot be used at the moment.',
    fix: 'Repeat later or ask the operator. One-time codes are not affected.',
  },
  INSUFFICIENT_CREDITS: {
    cause:
      'The balance is below the 2 USD that must be on the account to send, or below what this call and the codes that are still open may cost after the free verifications that are left.',
    fix: 'Make a deposit: `POST /v1/clients/deposits`. The event `billing.low_balance` warns below 5 USD.',
  },
  DEPOSIT_REQUIRED: {
    cause: 'The account never made a deposit, and its trial is over or it never had one.',
    fix: 'Make a first deposit: `POST /v1/clients/deposits`.',
  },
  FREE_TRIAL_EXHAUSTED: {
    cause:
      'The account never made a deposit, and its free verifications are used, or would be if every code that is open were verified.',
    fix: 'Make a deposit; the account then pays per success. What is left stays free, and a code that fails or expires unverified takes none.',
  },
  SPEND_CAP_EXCEEDED: {
    cause:
      'This call could take the account over the hourly cap its owner set (`spend_cap_hourly`).',
    fix: 'Wait for the next full UTC hour (`retry_after_seconds`), or raise the cap: `PATCH /v1/clients/settings`.',
  },
  BILLING_ERROR: {
    cause: 'The code was right and is used up, but the charge could not be confirmed in time.',
    fix: '**Treat the user as verified.** Do not verify again: the code is used. The charge is made later, exactly once.',
  },
  FREE_TRIAL_PAUSED: {
    cause: 'The operator paused the free trial for everybody.',
    fix: 'Repeat later, or make a deposit.',
  },
  INVALID_CODE: {
    cause: 'There is an open code for this phone, and it is another one.',
    fix: 'Let the user try again. `attempts_remaining` says how often before the phone is blocked for 15 minutes. After a resend only the newest code that arrived is right.',
  },
  INVALID_SESSION: {
    cause:
      'The session or refresh token is missing, over (15 minutes, or 30 days for a refresh token), was used already or was revoked.',
    fix: 'Take a new pair from `POST /v1/clients/session/refresh`, or log in again. A refresh token works once; presenting an old one ends the session.',
    provoke: 'Call `GET /v1/clients/security/sessions` with `Bearer sess_x`.',
  },
  INVALID_CREDENTIALS: {
    cause: 'The e-mail address or the password is not right. Which of the two is not told.',
    fix: 'Try again, or set a new password: `POST /v1/clients/password/forgot`. After ten failures in a row the address is blocked for 15 minutes, then longer.',
    provoke: 'Log in with a wrong password.',
  },
  TURNSTILE_REQUIRED: {
    cause:
      'Too many logins or resets failed for this e-mail address, from addresses that the account does not know. From then on such an address needs the bot check (Turnstile), where the operator configured it; where not, the answer is `RATE_LIMIT_EXCEEDED`. An address that the owner logged in from in the last 90 days never gets this answer.',
    fix: 'Show the Turnstile widget, and repeat the same call with its token as `turnstile_token`. The password or code was not looked at.',
    provoke:
      'It cannot be provoked with a test key: fail 50 logins of one e-mail address from several addresses.',
  },
  KEY_MANAGEMENT_DISABLED: {
    cause:
      'The account was set so that its API keys send and read, and nothing more: `keys_manage_account` is false.',
    fix: 'Make the change by session, or set `keys_manage_account` to true: `PATCH /v1/clients/settings` with a session that logged in within the last ten minutes.',
    provoke:
      'Set `keys_manage_account` to false by session, then make a key with a live key: `POST /v1/clients/keys`.',
  },
  REAUTH_REQUIRED: {
    cause:
      'A sensitive change was asked for, and the last proof of who is there is older than ten minutes; or a test key tried to change what live traffic depends on.',
    fix: 'In a session: `POST /v1/clients/security/reauth` with the password or a code, then repeat. With a test key: use a live key or a session.',
    provoke: 'Make a live key with a test key: `POST /v1/clients/keys`.',
  },
  EMAIL_TAKEN: {
    cause: 'There is an account with this e-mail address.',
    fix: 'Log in, or set a new password.',
    provoke: 'Register twice with the same address.',
  },
  CAPACITY_REQUEST_PENDING: {
    cause:
      'An account has one capacity request at a time, and one of this account waits for its review.',
    fix: 'Wait for the review, or take the pending request back with `DELETE /v1/clients/capacity-requests/{id}` and ask anew.',
    provoke: 'Ask for capacity twice.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    cause: 'The `Idempotency-Key` was used within 24 hours for another path or another body.',
    fix: 'Make a new key for every new send. A key names one send, not one user.',
  },
  METHOD_NOT_ALLOWED: {
    cause: 'The path exists, but not with this method.',
    fix: 'The `Allow` header names the methods there are.',
    provoke: 'Call `GET /v1/otp/send`.',
  },
  PAYLOAD_TOO_LARGE: {
    cause: 'The body is larger than 64 KiB.',
    fix: 'Send less. No call needs as much.',
    provoke: 'Send a body of 70,000 bytes.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    cause: 'The body is not `application/json`, or it is compressed.',
    fix: 'Send `Content-Type: application/json` and no `Content-Encoding`.',
    provoke: 'Leave the `Content-Type` header out.',
  },
  SERVICE_UNAVAILABLE: {
    cause:
      'A part that this call needs is away or full: the queue, Redis, a provider. No limit is skipped meanwhile, so sends are refused.',
    fix: 'Nothing was done. Wait `retry_after_seconds` and repeat with the same `Idempotency-Key`.',
  },
};

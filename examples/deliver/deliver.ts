// POST /v1/otp/deliver, as the recipes beside this folder call it: they bring the code, Tessera brings it to the phone.
import { createHmac } from 'node:crypto';

export type DeliverOptions = {
  /** The address of the API. */
  url: string;
  /** An API key: sk_live_… or sk_test_… */
  key: string;
  /** Less than the identity server waits for its sender. */
  timeoutMs?: number;
};

export type Delivery = {
  /** In E.164. */
  phone: string;
  /** Six digits. */
  code: string;
  /** What a repeat of this very request has in common with it, say its body; goes out as an HMAC only. */
  request: string;
};

/** What helps: another number or a linked chat, waiting, the same request again, or whoever runs this. */
export type Remedy = 'recipient' | 'wait' | 'again' | 'operator';

export type Refusal = {
  remedy: Remedy;
  /** The error code of the API, or NO_ANSWER. */
  code: string;
  /** For logs: names neither the phone nor the code. */
  message: string;
  retryAfterSeconds?: number;
  /** Where the recipient can link Telegram; for the recipient's eyes, not for logs. */
  telegramUrl?: string;
};

export type Outcome = { sent: true; messageId: string } | { sent: false; refusal: Refusal };

export type Deliver = (delivery: Delivery) => Promise<Outcome>;

type ErrorBody = {
  code: string;
  message: string;
  retry_after_seconds?: number;
  telegram_bot_url?: string;
  details?: { field: string; issue: string }[];
};
type Answer = { data?: { message_id: string }; error?: ErrorBody };

const ofRecipient = [
  ...['INVALID_PHONE', 'CHANNEL_NOT_LINKED', 'CENTRAL_WHATSAPP_UNSUPPORTED_REGION'],
];

/** A number in E.164: identity servers keep some without the plus sign. */
export const e164 = (phone: string): string => (phone.startsWith('+') ? phone : `+${phone}`);

const remedyFor = (status: number, code: string): Remedy => {
  if (ofRecipient.includes(code)) return 'recipient';
  if (code === 'IDEMPOTENCY_KEY_IN_PROGRESS' || status >= 500) return 'again';
  return status === 429 ? 'wait' : 'operator';
};

const refusalFor = (status: number, error: ErrorBody): Refusal => ({
  remedy: remedyFor(status, error.code),
  code: error.code,
  message: [
    error.message,
    ...(error.details ?? []).map((one) => `${one.field}: ${one.issue}`),
  ].join(' '),
  ...(error.retry_after_seconds === undefined
    ? {}
    : { retryAfterSeconds: error.retry_after_seconds }),
  ...(error.telegram_bot_url === undefined ? {} : { telegramUrl: error.telegram_bot_url }),
});

const noAnswer: Outcome = {
  sent: false,
  refusal: { remedy: 'again', code: 'NO_ANSWER', message: 'Tessera did not answer in time.' },
};

/** Makes the call; it resolves to what became of the code and never throws. */
export const createDeliver = ({ url, key, timeoutMs = 10_000 }: DeliverOptions): Deliver => {
  // A bare hash of something with a six-digit code in it gives the code away to whoever tries a million.
  const onceFor = (request: string): string =>
    createHmac('sha256', key).update(request).digest('hex');

  return async ({ phone, code, request }) => {
    try {
      const answer = await fetch(new URL('/v1/otp/deliver', url), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': onceFor(request),
        },
        body: JSON.stringify({ phone, code }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const { data, error } = (await answer.json()) as Answer;
      if (data) return { sent: true, messageId: data.message_id };
      return error ? { sent: false, refusal: refusalFor(answer.status, error) } : noAnswer;
    } catch {
      return noAnswer;
    }
  };
};

// better-auth with phone numbers: it makes and checks the codes, Tessera brings them to WhatsApp or Telegram.
// The plugin: https://www.better-auth.com/docs/plugins/phone-number
import { randomUUID } from 'node:crypto';
import { APIError, betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { phoneNumber } from 'better-auth/plugins/phone-number';
import type { Deliver, Refusal } from '../deliver/deliver.ts';
import { deliverFromEnvironment, serve, settings } from '../deliver/serve.ts';

export type AuthOptions = {
  deliver: Deliver;
  /** Where the application is reached. */
  baseURL: string;
  /** At least 32 characters, from a secret store. */
  secret: string;
};

const statusFor = {
  recipient: 'UNPROCESSABLE_ENTITY',
  wait: 'TOO_MANY_REQUESTS',
  again: 'SERVICE_UNAVAILABLE',
  operator: 'INTERNAL_SERVER_ERROR',
} as const;

/** What the person signing in is told: nothing about our credit or our keys. */
const errorFor = ({ remedy, code, retryAfterSeconds, telegramUrl }: Refusal): APIError => {
  const body = {
    recipient: { code, message: 'This number cannot be reached.', telegramUrl },
    wait: { code, message: 'Too many codes. Try again later.', retryAfterSeconds },
    again: { message: 'The code could not be sent. Try again.' },
    operator: { message: 'The code could not be sent.' },
  }[remedy];
  return new APIError(statusFor[remedy], body);
};

/** The authentication of an application whose users sign in with their phone. */
export const createAuth = ({ deliver, baseURL, secret }: AuthOptions) =>
  betterAuth({
    baseURL,
    secret,
    // For this example; in an application, the adapter of its database.
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    plugins: [
      phoneNumber({
        // Tessera delivers codes of six digits.
        otpLength: 6,
        phoneNumberValidator: (phone) => /^\+[1-9]\d{6,14}$/.test(phone),
        signUpOnVerification: { getTempEmail: (phone) => `${phone.slice(1)}@phone.invalid` },
        sendOTP: async ({ phoneNumber: phone, code }) => {
          // The plugin calls once per code, so no two calls are the same request.
          const outcome = await deliver({ phone, code, request: randomUUID() });
          if (!outcome.sent) throw errorFor(outcome.refusal);
        },
      }),
    ],
  });

if (import.meta.main) {
  const { BETTER_AUTH_URL: baseURL, BETTER_AUTH_SECRET: secret } = settings(
    'BETTER_AUTH_URL',
    'BETTER_AUTH_SECRET',
  );
  serve(createAuth({ deliver: deliverFromEnvironment(), baseURL, secret }).handler);
}

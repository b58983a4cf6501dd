// Settings for tests: the product's own table with values that point at the test's engines and simulators.
import { randomBytes } from 'node:crypto';
import { type Config, loadConfig } from '../../lib/kernel/config.ts';

const key = (): string => `k1:${randomBytes(32).toString('base64')}`;

export type EngineUrls = { mysql: string; redis: string; amqp: string; prefix: string };

/** What the simulators and the product must agree on. */
export const shared = {
  whatsapp: {
    appSecret: 'test-app-secret',
    accessToken: 'test-access-token',
    phoneNumberId: '106540352242922',
    wabaId: '102290129340398',
    verifyToken: 'test-verify-token',
    templateName: 'otp_code',
    templateLanguage: 'en_US',
  },
  telegram: {
    botToken: '700000001:test-bot-token',
    botUsername: 'tessera_test_bot',
    webhookSecret: 'test-webhook-secret',
  },
  stripe: { secretKey: 'sk_stripe_test', webhookSecret: 'whsec_stripe_test' },
} as const;

/** The token of the ops listener under test. */
export const opsToken = 'test-ops-token-0123456789';

/** The environment of a process under test; `more` wins. */
export const testEnvironment = (
  engines: EngineUrls,
  simUrl: string,
  more: Record<string, string> = {},
): Record<string, string> => ({
  LOG_LEVEL: 'silent',
  HOST: '127.0.0.1',
  PORT: '0',
  OPS_PORT: '0',
  OPS_TOKEN: opsToken,
  MYSQL_URL: engines.mysql,
  REDIS_URL: engines.redis,
  // A busy machine is no outage; tests of outages cut the line, which is noticed at once.
  REDIS_TIMEOUT_MS: '5000',
  AMQP_URL: engines.amqp,
  KEY_PREFIX: engines.prefix,
  CODE_PEPPERS: key(),
  PHONE_PEPPER: key(),
  SEALING_KEYS: key(),
  TOTP_KEYS: key(),
  WHATSAPP_BASE_URL: `${simUrl}/graph`,
  WHATSAPP_PHONE_NUMBER_ID: shared.whatsapp.phoneNumberId,
  WHATSAPP_WABA_ID: shared.whatsapp.wabaId,
  WHATSAPP_ACCESS_TOKEN: shared.whatsapp.accessToken,
  WHATSAPP_APP_ID: '670843887433847',
  WHATSAPP_APP_SECRET: shared.whatsapp.appSecret,
  WHATSAPP_VERIFY_TOKEN: shared.whatsapp.verifyToken,
  TELEGRAM_BASE_URL: `${simUrl}/telegram`,
  TELEGRAM_BOT_TOKEN: shared.telegram.botToken,
  TELEGRAM_BOT_USERNAME: shared.telegram.botUsername,
  TELEGRAM_WEBHOOK_SECRET: shared.telegram.webhookSecret,
  STRIPE_SECRET_KEY: shared.stripe.secretKey,
  STRIPE_WEBHOOK_SECRET: shared.stripe.webhookSecret,
  STRIPE_BASE_URL: simUrl,
  // Tests send much that nobody verifies; those of the cap set it themselves.
  UNPAID_EXPOSURE_TRIAL_USD: '1000000',
  UNPAID_EXPOSURE_USD: '1000000',
  ...more,
});

export const testConfig = (...args: Parameters<typeof testEnvironment>): Config =>
  loadConfig(testEnvironment(...args));

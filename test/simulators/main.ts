// Starts the provider simulators from the environment; ends on SIGTERM or SIGINT.
import { join } from 'node:path';
import { createSimulators } from './server.ts';

const { env } = process;

const required = (name: string): string => {
  const value = env[name];
  if (value) return value;
  process.stderr.write(`${name} is not set.\n`);
  return process.exit(1);
};

const simulators = await createSimulators({
  port: Number(env.SIM_PORT ?? 8082),
  host: env.SIM_HOST ?? '127.0.0.1',
  apiUrl: env.API_URL ?? 'http://127.0.0.1:8080',
  whatsapp: {
    appSecret: required('WHATSAPP_APP_SECRET'),
    accessToken: required('WHATSAPP_ACCESS_TOKEN'),
    phoneNumberId: required('WHATSAPP_PHONE_NUMBER_ID'),
    wabaId: required('WHATSAPP_WABA_ID'),
    verifyToken: required('WHATSAPP_VERIFY_TOKEN'),
    templateName: env.WHATSAPP_TEMPLATE_NAME ?? 'otp_code',
    templateLanguage: env.WHATSAPP_TEMPLATE_LANGUAGE ?? 'en_US',
  },
  telegram: {
    botToken: required('TELEGRAM_BOT_TOKEN'),
    botUsername: required('TELEGRAM_BOT_USERNAME'),
    webhookSecret: required('TELEGRAM_WEBHOOK_SECRET'),
  },
  stripe: {
    secretKey: env.STRIPE_SECRET_KEY ?? '',
    webhookSecret: env.STRIPE_WEBHOOK_SECRET ?? '',
  },
  receiverSecretFile: env.TESSERA_STATE && join(env.TESSERA_STATE, 'webhook-secret'),
});

process.stdout.write(`Simulated phones are ready at ${simulators.url}\n`);

const end = (): void => {
  void simulators.close().then(() => process.exit(0));
};
process.once('SIGTERM', end);
process.once('SIGINT', end);

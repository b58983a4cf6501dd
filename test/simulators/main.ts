// Process entry of the simulators.
import { createSimulators } from './server.ts';

const env = (name: string, standard = ''): string => process.env[name] || standard;

const simulators = await createSimulators({
  port: Number(env('SIM_PORT', '8082')),
  apiUrl: env('API_URL', 'http://127.0.0.1:8080'),
  whatsapp: {
    appSecret: env('WHATSAPP_APP_SECRET'),
    accessToken: env('WHATSAPP_ACCESS_TOKEN'),
    phoneNumberId: env('WHATSAPP_PHONE_NUMBER_ID'),
    wabaId: env('WHATSAPP_WABA_ID'),
    verifyToken: env('WHATSAPP_VERIFY_TOKEN'),
    templateName: env('WHATSAPP_TEMPLATE_NAME', 'otp_code'),
    templateLanguage: env('WHATSAPP_TEMPLATE_LANGUAGE', 'en_US'),
  },
  telegram: {
    botToken: env('TELEGRAM_BOT_TOKEN'),
    botUsername: env('TELEGRAM_BOT_USERNAME'),
    webhookSecret: env('TELEGRAM_WEBHOOK_SECRET'),
  },
});

const end = (): void => {
  simulators.close().then(
    () => process.exit(0),
    () => process.exit(1),
  );
};
process.on('SIGTERM', end);
process.on('SIGINT', end);
process.stdout.write(`The simulated phones are at ${simulators.url}\n`);

// The settings of the processes of the local stack: addresses, the simulated providers, secrets made once.
import { randomBytes } from 'node:crypto';
import type { Engines } from './engines.ts';
import { stateFolder } from './session.ts';
import type { State } from './state.ts';

/** The ports people know: the public API, the ops listener, the simulated phones. */
export type Doors = { api: number; ops: number; sim: number };

const digits = (length: number) => (): string =>
  Array.from(randomBytes(length), (byte) => String((byte % 9) + 1)).join('');

// The form of lib/kernel/config.ts: id:base64 of 32 bytes.
const namedKey = (): string => `k1:${randomBytes(32).toString('base64')}`;

const local = (port: number, path = ''): string => `http://127.0.0.1:${port}${path}`;

const addresses = (doors: Doors, engines: Engines): Record<string, string> => ({
  MYSQL_URL: engines.mysql,
  REDIS_URL: engines.redis,
  AMQP_URL: engines.amqp,
  PORT: String(doors.api),
  OPS_PORT: String(doors.ops),
  SIM_PORT: String(doors.sim),
  API_URL: local(doors.api),
  WHATSAPP_BASE_URL: local(doors.sim, '/graph'),
  TELEGRAM_BASE_URL: local(doors.sim, '/telegram'),
  STRIPE_BASE_URL: local(doors.sim),
  // The demo account's webhooks go to the receiver beside the simulated phones, and nowhere else on this machine.
  WEBHOOK_ALLOWED_HOSTS: `127.0.0.1:${doors.sim}=*`,
});

const secrets = ({ secret }: State): Record<string, string> => ({
  CODE_PEPPERS: secret('codePepper', namedKey),
  PHONE_PEPPER: secret('phonePepper', namedKey),
  SEALING_KEYS: secret('sealingKey', namedKey),
  TOTP_KEYS: secret('totpKey', namedKey),
  OPS_TOKEN: secret('opsToken'),
});

// The simulators and the product must agree on these.
const providers = ({ secret }: State): Record<string, string> => ({
  WHATSAPP_PHONE_NUMBER_ID: secret('whatsappPhoneNumberId', digits(15)),
  WHATSAPP_WABA_ID: secret('whatsappWabaId', digits(15)),
  WHATSAPP_ACCESS_TOKEN: secret('whatsappAccessToken'),
  // The simulated provider's one app.
  WHATSAPP_APP_ID: '670843887433847',
  WHATSAPP_APP_SECRET: secret('whatsappAppSecret'),
  WHATSAPP_VERIFY_TOKEN: secret('whatsappVerifyToken'),
  WHATSAPP_TEMPLATE_NAME: 'otp_code',
  WHATSAPP_TEMPLATE_LANGUAGE: 'en_US',
  TELEGRAM_BOT_TOKEN: `${secret('telegramBotId', digits(9))}:${secret('telegramBotToken')}`,
  TELEGRAM_BOT_USERNAME: 'tessera_local_bot',
  TELEGRAM_WEBHOOK_SECRET: secret('telegramWebhookSecret'),
  STRIPE_SECRET_KEY: secret('stripeSecretKey'),
  STRIPE_WEBHOOK_SECRET: secret('stripeWebhookSecret'),
});

const standards = (): Record<string, string> => ({
  TESSERA_ENV: 'development',
  LOG_LEVEL: 'info',
});

// What npm tells its scripts is nobody else's business.
const inherited = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(env).filter(([name, value]) => value !== '' && !name.startsWith('npm_')),
  );

/**
 * The environment every process of the stack gets. A variable that is already set wins, except for
 * the addresses, which were made from those variables before.
 */
export const buildEnvironment = (given: {
  env: NodeJS.ProcessEnv;
  state: State;
  doors: Doors;
  engines: Engines;
}): NodeJS.ProcessEnv => {
  const { env, state, doors, engines } = given;
  const own = inherited(env);
  const all = addresses(doors, engines);
  const { WHATSAPP_BASE_URL, TELEGRAM_BASE_URL, STRIPE_BASE_URL, ...more } = all;
  const { WEBHOOK_ALLOWED_HOSTS, ...fixed } = more;
  // Beside the real WhatsApp no host is open to every account.
  const simulated = !own.WHATSAPP_BASE_URL?.startsWith('https:');
  return {
    ...{ WHATSAPP_BASE_URL, TELEGRAM_BASE_URL, STRIPE_BASE_URL },
    ...(simulated ? { WEBHOOK_ALLOWED_HOSTS } : {}),
    ...standards(),
    ...secrets(state),
    ...providers(state),
    ...own,
    ...fixed,
    TESSERA_STATE: state.folder,
    NODE_COMPILE_CACHE: stateFolder('compile-cache'),
    // Some shells set HOST to the name of the machine.
    HOST: '127.0.0.1',
  };
};

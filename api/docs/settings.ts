// The settings table, read off the schema that reads the environment.
import { settings } from '../../lib/kernel/config.ts';
import { code, join, table } from './page.ts';

/** Headings of the table and which settings stand under each; a test finds those that are under none. */
export const settingGroups: Record<string, RegExp> = {
  'The process':
    /^(HOST|PORT|LOG_.*|TRUSTED_PROXIES|PUBLIC_URL|SHUTDOWN_SECONDS|TESSERA_.*|OPS_.*|METRICS_.*|OTEL_.*|TRACE.*|HEARTBEAT.*|PROCESS.*)$/,
  'Connections and bodies':
    /^(MAX_CONNECTIONS|MAX_BODIES|BODY_MEMORY_|HEADERS_TIMEOUT_|REQUEST_TIMEOUT_)/,
  'The engines': /^(MYSQL_|REDIS_|AMQP_|RABBITMQ_|KEY_PREFIX|PUBLISH_)/,
  'What is kept': /^RETENTION_/,
  Keys: /^(CODE_PEPPERS|PHONE_PEPPER|SEALING_KEYS|TOTP_KEYS)$/,
  'Sending and verifying': /^(SEND_|REACHABILITY_|SETTLE_|MAX_SENDS_)/,
  Money: /^(TRIAL_|PRICE_|SHARED_NUMBER_|UNPAID_|SAFETY_FLOOR_|STRIPE_|DEPOSIT_)/,
  Webhooks: /^WEBHOOK_/,
  'Playground and bot check': /^(PLAYGROUND|TURNSTILE_)/,
  'The guard against pumping': /^FRAUD_/,
  WhatsApp: /^WHATSAPP_/,
  Telegram: /^TELEGRAM_/,
};

type Described = {
  type?: string;
  flags?: { default?: unknown; presence?: string };
  allow?: unknown[];
  rules?: { name: string; args?: { limit?: number } }[];
};

const described = (schema: unknown): Described => (schema as { describe(): Described }).describe();

const allowed = ({ type, allow = [], rules = [] }: Described): string => {
  const unit = type === 'string' ? ' characters' : '';
  const values = allow.filter((value) => typeof value === 'string' && value !== '');
  const bound = (name: string) => rules.find((rule) => rule.name === name)?.args?.limit;
  const [min, max] = [bound('min'), bound('max')];
  if (values.length > 0) return values.map((value) => code(String(value))).join(', ');
  if (min !== undefined && max !== undefined) return `${min} to ${max}${unit}`;
  return max === undefined ? '' : `up to ${max}${unit}`;
};

const standard = (env: string, { flags }: Described): string => {
  if (flags?.presence === 'required') return '**required**';
  const value = flags?.default;
  // Joi describes lists and maps as objects.
  const holdsNothing =
    typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  if (value === undefined || value === '' || holdsNothing) return 'empty';
  return code(env.endsWith('_USD') ? String(Number(value) / 1_000_000) : String(value));
};

const all = Object.values(settings) as {
  env: string;
  schema: unknown;
  about: string;
  secret: boolean;
}[];

const rowOf = ({ env, schema, about, secret }: (typeof all)[number]): string[] => {
  const description = described(schema);
  const note = secret ? ' *Secret: never shown or logged.*' : '';
  return [code(env), standard(env, description), allowed(description), `${about}${note}`];
};

/** The heading a setting stands under. */
export const groupOf = (env: string): string | undefined =>
  Object.keys(settingGroups).find((name) => settingGroups[name]?.test(env));

export const settingTables = (): string =>
  join(
    ...Object.keys(settingGroups).flatMap((name) => {
      const rows = all.filter(({ env }) => groupOf(env) === name).map(rowOf);
      return rows.length === 0
        ? []
        : [`## ${name}`, table(['Variable', 'Default', 'Allowed', 'What it does'], rows)];
    }),
  );

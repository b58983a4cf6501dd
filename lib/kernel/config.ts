// The settings: one table that reads, bounds, documents and types the environment.
import { readFileSync } from 'node:fs';
import type Joi from 'joi';
import { intakeSettings } from './intake-settings.ts';
import type { LogLevel } from './log.ts';
import { observingSettings } from './observing-settings.ts';
import { openHosts, openToEveryAccount } from './open-hosts.ts';
import { opsSettings } from './ops-settings.ts';
import { providerSettings } from './provider-settings.ts';
import { redact } from './redact.ts';
import { type Infer, integer, oneOf, type Schema, text } from './schema.ts';
import {
  commaList,
  milliseconds,
  mysqlUrl,
  namedKeys,
  secret,
  setting,
  urls,
  usd,
} from './setting.ts';

/** Every setting there is. `docker/env.example` is compared with it by a test. */
export const settings = {
  host: setting('HOST', text().default('0.0.0.0'), 'Address the public API listens on.'),
  port: setting(
    'PORT',
    integer().min(0).max(65535).default(8080),
    'Port the public API listens on.',
  ),
  logLevel: setting(
    'LOG_LEVEL',
    oneOf<LogLevel>('debug', 'info', 'warn', 'error', 'silent').default('info'),
    'How much is logged.',
  ),
  trustedProxies: setting(
    'TRUSTED_PROXIES',
    integer().min(0).max(10).optional() as Schema<number | undefined>,
    'How many proxies stand in front (0: none); must be set where PUBLIC_URL is https. Only that many entries of X-Forwarded-For are believed, and any at all lets the ops listener believe X-Forwarded-Proto and X-Forwarded-Host.',
  ),

  publicUrl: setting(
    'PUBLIC_URL',
    text()
      .uri({ scheme: ['http', 'https'] })
      .allow('')
      .default(''),
    'Address under which customers reach the public API: https://api.example.com. Empty: not told.',
  ),

  mysqlUrl: secret(
    'MYSQL_URL',
    mysqlUrl().required(),
    'MySQL 8.4 or 9, or MariaDB 10.11: mysql://user:password@host:3306/database. With ?ssl-mode= DISABLED (as without), PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY, and &ssl-ca= the PEM file of the authority.',
  ),
  mysqlPool: setting(
    'MYSQL_POOL',
    integer().min(1).max(200).default(10),
    'Connections to MySQL per process.',
  ),
  redisUrl: secret(
    'REDIS_URL',
    urls(/rediss?/, 'redis://… or rediss://…').required(),
    'Redis 7 or 8: redis://host:6379/0; a comma list means Redis Cluster, and so does one address with a comma behind it.',
  ),
  redisTimeoutMs: setting(
    'REDIS_TIMEOUT_MS',
    milliseconds(50, 10_000, 500),
    'How long one Redis command may take.',
  ),
  keyPrefix: setting(
    'KEY_PREFIX',
    text()
      .pattern(/^[a-z0-9-]{1,24}:$/)
      .default('tsr:'),
    'First part of every Redis key.',
  ),
  amqpUrls: secret(
    'AMQP_URL',
    urls(/amqps?/, 'amqp://… or amqps://…').required(),
    'RabbitMQ 3.10 to 4.x: amqp://user:password@host:5672/vhost; a comma list names the nodes of a cluster.',
  ),
  publishTimeoutMs: setting(
    'PUBLISH_TIMEOUT_MS',
    milliseconds(100, 60_000, 10_000),
    'How long the broker may take to confirm a message.',
  ),

  codePeppers: secret(
    'CODE_PEPPERS',
    namedKeys().required(),
    'Keys under which codes are kept as HMACs: id:base64 of 32 bytes, newest first. Keep an old one for 5 minutes after adding a new one.',
  ),
  phonePepper: secret(
    'PHONE_PEPPER',
    namedKeys().required(),
    'One key under which phone numbers are looked up: id:base64 of 32 bytes. It cannot be changed later.',
  ),
  sealingKeys: secret(
    'SEALING_KEYS',
    namedKeys().required(),
    'Keys that seal secrets at rest and codes in queues: id:base64 of 32 bytes, newest first.',
  ),

  totpKeys: secret(
    'TOTP_KEYS',
    namedKeys().default([]),
    'Keys that seal the secrets of authenticator apps: id:base64 of 32 bytes, newest first. Empty: TOTP answers TOTP_NOT_CONFIGURED.',
  ),

  sendDeadlineMs: setting(
    'SEND_DEADLINE_MS',
    milliseconds(500, 60_000, 10_000),
    'How long a send may wait for a worker before the API gives it up.',
  ),
  reachabilityWindowMs: setting(
    'REACHABILITY_WINDOW_MS',
    milliseconds(0, 10_000, 2_500),
    'How long a send to a recipient of unknown reachability waits for the channel to report a failure. 0 turns it off.',
  ),
  settleDeadlineMs: setting(
    'SETTLE_DEADLINE_MS',
    milliseconds(100, 30_000, 2_000),
    'How long a verify waits for billing before it answers BILLING_ERROR.',
  ),
  maxSendsInFlight: setting(
    'MAX_SENDS_IN_FLIGHT',
    integer().min(1).max(100_000).default(1_000),
    'Sends one API process holds at once; more are answered 503.',
  ),
  shutdownSeconds: setting(
    'SHUTDOWN_SECONDS',
    integer().min(1).max(300).default(25),
    'How long a process may take to finish what is in flight after SIGTERM.',
  ),

  trialVerifications: setting(
    'TRIAL_VERIFICATIONS',
    integer().min(0).max(1_000_000).default(50),
    'Free verifications of a new account. 0: none, a deposit comes first.',
  ),
  priceMicros: setting(
    'PRICE_USD',
    usd(0.05),
    'Price of a verification in countries that have none of their own, USD.',
  ),
  sharedCountries: setting(
    'SHARED_NUMBER_COUNTRIES',
    commaList(/[A-Z]{2}/),
    'Countries the shared number serves, with commas between them: US,GB. Empty: all.',
  ),
  sharedHourly: setting(
    'SHARED_NUMBER_HOURLY',
    integer().min(1).max(10_000_000).default(18_000),
    'Sends of one account on the shared number in a UTC hour.',
  ),
  sharedUnverified: setting(
    'SHARED_NUMBER_UNVERIFIED',
    integer().min(0).max(1_000_000).default(10),
    'Unverified messages a new account may have on the shared number before its first deposit. Granted at sign-up: a change holds for accounts made later.',
  ),
  sharedPerVerified: setting(
    'SHARED_NUMBER_PER_VERIFIED',
    integer().min(0).max(10_000).default(5),
    'How many more each verified message earns such an account. Granted at sign-up, too.',
  ),
  exposureTrialMicros: setting(
    'UNPAID_EXPOSURE_TRIAL_USD',
    usd(2, 1_000_000),
    'What the unverified messages of an account that never made a deposit may cost you in 24 hours, USD: at the cost of each country, and the general price where none is set.',
  ),
  exposureMicros: setting(
    'UNPAID_EXPOSURE_USD',
    usd(10, 1_000_000),
    'The same for an account that has made a deposit, USD.',
  ),
  exposureTimesCharged: setting(
    'UNPAID_EXPOSURE_TIMES_CHARGED',
    integer().min(0).max(1_000).default(3),
    'Or so many times what such an account was charged in the same time, whichever is more.',
  ),
  floorMinimumDaily: setting(
    'SAFETY_FLOOR_MINIMUM_DAILY',
    integer().min(1).max(1_000_000).default(20),
    'Settled messages a day must have to count for the safety floor.',
  ),

  playground: setting(
    'PLAYGROUND',
    oneOf('off', 'sandbox', 'live').default('sandbox'),
    'What trying it out without an account does. sandbox: shows what a phone would show. live: sends real messages, which nobody pays for. off: answers NOT_FOUND.',
  ),

  webhookAllowedHosts: setting(
    'WEBHOOK_ALLOWED_HOSTS',
    openHosts(),
    'Hosts that are not public and yet reached by the webhooks of the accounts named: host=account or host:port=account, several account ids with | between them, several hosts with commas. host=* opens a host to every account, where WhatsApp is simulated only.',
  ),
  webhookPorts: setting(
    'WEBHOOK_PORTS',
    commaList(/\d{1,5}/).default('443,8443'),
    'Ports that webhooks may reach, with commas between them. The hosts above have no such bound.',
  ),
  webhookDenied: setting(
    'WEBHOOK_DENIED_ADDRESSES',
    commaList(/[0-9A-Fa-f.:]+(\/\d{1,3})?/),
    'Public addresses that webhooks must not reach, such as your own: 198.51.100.7,2001:db8::/32.',
  ),
  webhookTimeoutMs: setting(
    'WEBHOOK_TIMEOUT_MS',
    milliseconds(100, 60_000, 15_000),
    'How long one webhook may take, its answer included.',
  ),

  retentionDays: setting(
    'RETENTION_DAYS',
    integer().min(30).max(3_650).default(180),
    'Days for which messages, their events and TOTP attempts are kept; they are dropped by the week, up to seven days later. Money and daily figures stay.',
  ),

  fraudGuard: setting(
    'FRAUD_GUARD',
    oneOf('off', 'shadow', 'enforce').default('enforce'),
    'Holds a block of numbers or a country of an account when hardly any code there is entered, over all accounts. shadow: only logs what it would do. The same for all processes.',
  ),
  fraudAllowedAccounts: setting(
    'FRAUD_ALLOWED_ACCOUNTS',
    commaList(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/),
    'Ids of accounts that the fraud guard leaves alone, with commas between them.',
  ),
  fraudAllowedPrefixes: setting(
    'FRAUD_ALLOWED_PREFIXES',
    commaList(/\+[1-9]\d{0,14}/),
    'Beginnings of numbers that the fraud guard leaves alone, with commas between them: +20, +1415555.',
  ),

  ...intakeSettings,
  ...opsSettings,
  ...observingSettings,
  ...providerSettings,
} as const;

type Settings = typeof settings;
export type Config = { readonly [K in keyof Settings]: Infer<Settings[K]['schema']> };

/** Thrown when the environment does not fit the settings; the message has one line per mistake. */
export class ConfigError extends Error {}

// Joi's own words repeat the value, which may be a secret.
const messages: Joi.LanguageMessages = {
  'string.pattern.base': 'does not have the required form; docker/env.example describes it',
  'string.pattern.name': 'must be {{#name}}',
};

/** The API speaks HTTP alone, so where its address is https a proxy stands in front, and its callers' addresses are told by it. */
const proxyMismatches = ({ publicUrl, trustedProxies }: Partial<Config>): string[] =>
  publicUrl?.startsWith('https:') && trustedProxies === undefined
    ? [
        'TRUSTED_PROXIES must be set where PUBLIC_URL is https: to the number of proxies that add to X-Forwarded-For, or to 0 when none does. Unset, all callers would count as one address',
      ]
    : [];

/** What is wrong though each setting by itself is sound. */
const mismatches = (values: Partial<Config>): string[] => {
  const { webhookAllowedHosts: hosts, whatsappBaseUrl = '' } = values;
  const open = hosts && openToEveryAccount(hosts);
  if (open === undefined || !whatsappBaseUrl.startsWith('https:')) return [];
  return [
    `WEBHOOK_ALLOWED_HOSTS must not open ${open} to every account (*) beside the real WhatsApp; name its accounts: ${open}=<account id>`,
  ];
};

const describeMistake = (env: string, issue: string): string => `${env} ${redact(issue)}`;

type Environment = Record<string, string | undefined>;

/**
 * The text of a setting: its variable, or for a secret the file that the variable with _FILE behind its name leads to,
 * as secrets managers write them; white space at the end of the file does not count.
 * @throws ConfigError when both are set, or the file cannot be read
 */
const textOf = (env: Environment, variable: string, secret: boolean): string | undefined => {
  const text = env[variable] || undefined;
  const file = secret ? env[`${variable}_FILE`] || undefined : undefined;
  if (file === undefined) return text;
  if (text !== undefined) {
    throw new ConfigError(`${variable} and ${variable}_FILE are both set; set one of them`);
  }
  try {
    return readFileSync(file, 'utf8').trimEnd() || undefined;
  } catch {
    throw new ConfigError(`${variable}_FILE leads to ${file}, which cannot be read`);
  }
};

/**
 * Reads all settings from `env`.
 * @throws ConfigError naming every setting that is wrong and what is allowed, without any secret in it.
 */
export const loadConfig = (env: Environment): Config => {
  const mistakes: string[] = [];
  const read = (variable: string, secret: boolean): string | undefined => {
    try {
      return textOf(env, variable, secret);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      mistakes.push(error.message);
      return undefined;
    }
  };
  const values = Object.entries(settings).map(([name, { env: variable, schema, secret }]) => {
    const given = read(variable, secret);
    const { value, error } = (schema as Joi.Schema).validate(given, {
      errors: { label: false },
      messages,
    });
    const isTold = mistakes.some((mistake) => mistake.startsWith(`${variable}_FILE `));
    if (error && !isTold) mistakes.push(describeMistake(variable, error.message.trim()));
    return [name, value];
  });
  mistakes.push(...proxyMismatches(Object.fromEntries(values)));
  mistakes.push(...mismatches(Object.fromEntries(values)));
  if (mistakes.length > 0) {
    throw new ConfigError(`The settings are not usable:\n  ${mistakes.join('\n  ')}`);
  }
  return Object.freeze(Object.fromEntries(values)) as Config;
};

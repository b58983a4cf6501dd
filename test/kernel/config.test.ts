// Settings: a bad one stops the process with a clear line, secrets are never repeated, the example file is complete.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { ConfigError, loadConfig, settings } from '../../lib/kernel/config.ts';
import { isOpenTo } from '../../lib/kernel/open-hosts.ts';
import { testEnvironment } from '../support/settings.ts';

const root = join(import.meta.dirname, '..', '..');

const environment = (more: Record<string, string> = {}) =>
  testEnvironment(
    {
      mysql: 'mysql://user:sesame@127.0.0.1/db',
      redis: 'redis://127.0.0.1:6379/0',
      amqp: 'amqp://user:sesame@127.0.0.1:5672/',
      prefix: 'test:',
    },
    'http://127.0.0.1:8082',
    more,
  );

const mistakes = (more: Record<string, string>): string =>
  (loadConfigError(more) ?? new ConfigError('')).message;

const loadConfigError = (more: Record<string, string>): Error | undefined => {
  try {
    loadConfig(environment(more));
    return undefined;
  } catch (error) {
    return error as Error;
  }
};

test('a sound environment is read, typed and given its defaults', (t) => {
  const config = loadConfig(environment());
  t.is(config.sendDeadlineMs, 10_000);
  t.is(config.telegramLinkProof, 'contact');
  t.is(config.priceMicros, 50_000);
  t.is(loadConfig(environment({ PRICE_USD: '0.123456' })).priceMicros, 123_456);
  t.regex(mistakes({ PRICE_USD: '0.1234567' }), /PRICE_USD/);
  t.is(config.codePeppers[0]?.key.length, 32);
  t.true(Object.isFrozen(config));
});

test('all mistakes are named at once, each with what is allowed', (t) => {
  const text = mistakes({ PORT: '70000', TELEGRAM_LINK_PROOF: 'hope', REDIS_URL: 'http://x' });
  t.regex(text, /PORT must be less than or equal to 65535/);
  t.regex(text, /TELEGRAM_LINK_PROOF must be one of \[contact, tap\]/);
  t.regex(text, /REDIS_URL .*redis/);
});

test('allow-lists are accounts and beginnings of numbers with commas between them', (t) => {
  const account = '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656';
  const sound = {
    FRAUD_ALLOWED_ACCOUNTS: `${account},${account}`,
    FRAUD_ALLOWED_PREFIXES: '+20,+1415555',
  };
  t.is(mistakes(sound), '');
  t.regex(mistakes({ FRAUD_ALLOWED_ACCOUNTS: `${account},all` }), /FRAUD_ALLOWED_ACCOUNTS/);
  for (const wrong of ['20', '+', '+20,', '+20, +30', `+20${',+20'.repeat(5_000)}`]) {
    t.regex(mistakes({ FRAUD_ALLOWED_PREFIXES: wrong }), /FRAUD_ALLOWED_PREFIXES/);
  }
});

test('hosts are open to the accounts named behind them, and to all only where WhatsApp is simulated', (t) => {
  const [one, other] = [
    '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656',
    '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d657',
  ];
  const read = (value: string, more: Record<string, string> = {}) =>
    loadConfig(environment({ WEBHOOK_ALLOWED_HOSTS: value, ...more })).webhookAllowedHosts;
  t.is(loadConfig(environment()).webhookAllowedHosts.size, 0);
  const hosts = read(`10.0.0.5:443=${one}|${other},Hooks.Internal=${one.toUpperCase()},[::1]:9=*`);
  const isOpen = (url: string, account: string) => isOpenTo(hosts, new URL(url), account);
  t.true(isOpen('https://10.0.0.5/', one));
  t.true(isOpen('https://10.0.0.5:443/', other));
  t.false(isOpen('https://10.0.0.5:8443/', one));
  t.true(isOpen('https://hooks.internal:8443/', one));
  t.false(isOpen('https://hooks.internal:8443/', other));
  t.true(isOpen('http://[::1]:9/', other));
  t.false(isOpen('http://[::1]/', other));
  const mistakeOf = (value: string) => mistakes({ WEBHOOK_ALLOWED_HOSTS: value });
  const wrong: [string, RegExp][] = [
    ['10.0.0.5', /10\.0\.0\.5 must name the accounts it is open to; write host=account/],
    ['10.0.0.5=', /10\.0\.0\.5 must name the accounts/],
    [`a=${one}=${other}`, /a must name the accounts/],
    [`=${one}`, /'' is no host/],
    [`https://10.0.0.5=${one}`, /'https:\/\/10\.0\.0\.5' is no host/],
    [`*.internal=${one}`, /'\*\.internal' is no host/],
    [`a=${one}, b=${one}`, /' b' is no host/],
    [`a=${one},`, /'' is no host/],
    ['a=ada@ex.test', /'ada@ex\.test' behind a is no account id/],
    [`a=${one}|`, /'' behind a is no account id/],
    [`a=${one}|*`, /'\*' behind a is no account id/],
    [`a=${one},A=${other}`, /a is named twice/],
  ];
  for (const [value, message] of wrong) t.regex(mistakeOf(value), message, value);
  const real = { WHATSAPP_BASE_URL: 'https://graph.facebook.com' };
  t.is(read(`10.0.0.5=${one}`, real).size, 1);
  t.throws(() => read('10.0.0.5:8443=*', real), {
    message:
      /WEBHOOK_ALLOWED_HOSTS must not open 10\.0\.0\.5:8443 to every account \(\*\) beside the real WhatsApp; name its accounts/,
  });
});

test('a missing required setting is named', (t) => {
  const { MYSQL_URL: _, ...rest } = environment();
  t.throws(() => loadConfig(rest), { instanceOf: ConfigError, message: /MYSQL_URL is required/ });
});

test('a mistake in a secret does not repeat the secret', (t) => {
  const text = mistakes({
    CODE_PEPPERS: 'k1:c2VzYW1l',
    MYSQL_URL: 'nonsense://user:sesame@host/db',
    TELEGRAM_WEBHOOK_SECRET: 'sesame with spaces',
  });
  t.regex(text, /CODE_PEPPERS/);
  t.regex(text, /MYSQL_URL/);
  t.notRegex(text, /sesame|c2VzYW1l/);
});

test('a secret may stand in a file that its variable names', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-secrets-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'ops-token');
  writeFileSync(file, 'a token of a secrets manager\n');
  const fromFile = { OPS_TOKEN: '', OPS_TOKEN_FILE: file };
  t.is(loadConfig(environment(fromFile)).opsToken, 'a token of a secrets manager');
  const both = mistakes({ OPS_TOKEN: 'sesame sesame sesame', OPS_TOKEN_FILE: file });
  t.regex(both, /OPS_TOKEN and OPS_TOKEN_FILE are both set; set one of them/);
  const gone = mistakes({ MYSQL_URL: '', MYSQL_URL_FILE: join(folder, 'gone') });
  t.regex(gone, /MYSQL_URL_FILE leads to \S+gone, which cannot be read/);
  t.notRegex(gone, /required/);
  writeFileSync(file, 'sesame');
  t.notRegex(both + mistakes(fromFile), /sesame/);
  // A setting that may be shown has no need of a file.
  t.is(loadConfig(environment({ HOST_FILE: file })).host, '127.0.0.1');
});

test('the example file names every setting with its description and default, and nothing else', (t) => {
  const text = readFileSync(join(root, 'docker/env.example'), 'utf8');
  const named = [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map((match) => match[1]);
  t.deepEqual(
    named,
    Object.values(settings).map(({ env }) => env),
  );
  const plain = text.replace(/\n# /g, ' ').replace(/\s+/g, ' ');
  for (const { env, about } of Object.values(settings)) t.true(plain.includes(about), env);
});

test('where the public address is https, TRUSTED_PROXIES must be set, be it to 0', (t) => {
  const secure = { PUBLIC_URL: 'https://api.example.com' };
  t.regex(mistakes(secure), /TRUSTED_PROXIES must be set where PUBLIC_URL is https/);
  for (const count of ['0', '2']) {
    const given = environment();
    t.is(loadConfig({ ...given, ...secure, TRUSTED_PROXIES: count }).trustedProxies, Number(count));
  }
  t.is(
    loadConfig({ ...environment(), PUBLIC_URL: 'http://10.0.0.7:8080' }).trustedProxies,
    undefined,
  );
});

// The doctor on settings: each combination that does not make sense is found, and no secret is repeated.
import test from 'ava';
import { examineSettings } from '../../lib/doctor/settings.ts';
import { testEnvironment } from '../support/settings.ts';

const engines = {
  ...{ mysql: 'mysql://user:sesame@127.0.0.1/db', redis: 'redis://127.0.0.1:6379/0' },
  ...{ amqp: 'amqp://user:sesame@127.0.0.1:5672/', prefix: 'test:' },
};
const base = testEnvironment(engines, 'http://127.0.0.1:8082');

const codes = (more: Record<string, string>): string[] =>
  examineSettings({ ...base, ...more })
    .findings.filter(({ level }) => level !== 'ok')
    .map(({ code }) => code);

test('sound settings have nothing against them', (t) => {
  t.deepEqual(codes({ DEPOSIT_RETURN_URL: 'https://shop.example/paid' }), []);
  const found = examineSettings(base).findings.map(({ code }) => code);
  t.true(found.includes('settings.sound') && found.includes('settings.simulated'));
});

const key = 'k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';
const returns = { DEPOSIT_RETURN_URL: 'https://shop.example/paid' };

for (const [code, more] of [
  ['settings.no_whatsapp', { WHATSAPP_PHONE_NUMBER_ID: '', WHATSAPP_ACCESS_TOKEN: '' }],
  ['settings.half_whatsapp', { WHATSAPP_ACCESS_TOKEN: '' }],
  ['settings.no_app_secret', { WHATSAPP_APP_SECRET: '' }],
  ['settings.no_verify_token', { WHATSAPP_VERIFY_TOKEN: '' }],
  ['settings.no_telegram', { TELEGRAM_BOT_TOKEN: '' }],
  ['settings.half_telegram', { TELEGRAM_WEBHOOK_SECRET: '' }],
  ['settings.tap', { TELEGRAM_LINK_PROOF: 'tap' }],
  ['settings.no_totp', { TOTP_KEYS: '' }],
  ['settings.half_stripe', { STRIPE_WEBHOOK_SECRET: '' }],
  ['settings.return_url', { DEPOSIT_RETURN_URL: '' }],
  ['settings.open_playground', { PLAYGROUND: 'live' }],
  ['settings.no_site_key', { TURNSTILE_SECRET: 'secret' }],
  ['settings.shared_key', { CODE_PEPPERS: key, TOTP_KEYS: key }],
  ['settings.ops_open', { OPS_HOST: '0.0.0.0', OPS_TOKEN: 'a token of enough length' }],
  ['settings.plain_http', { WHATSAPP_BASE_URL: 'http://proxy.example' }],
] as const) {
  test(`it finds ${code}`, (t) => {
    t.deepEqual(codes({ ...returns, ...more }), [code]);
  });
}

test('a variable that is nearly a setting is said, without what it holds; others are not', (t) => {
  const said = (more: Record<string, string>) =>
    examineSettings({ ...base, ...more }).findings.filter(
      ({ code }) => code === 'settings.misspelt',
    );
  for (const [name, meant] of [
    ['TURNSTILE_SECERT', 'TURNSTILE_SECRET'],
    ['TRUSTED_PROXYS', 'TRUSTED_PROXIES'],
    ['TRUSTED_PROXIE', 'TRUSTED_PROXIES'],
    ['RETENTION_DAY', 'RETENTION_DAYS'],
  ] as const) {
    const [found] = said({ [name]: 'sesame' });
    t.true(found?.text.startsWith(`${name} is set`) && found.advice.includes(meant), name);
    t.notRegex(JSON.stringify(found), /sesame/);
  }
  t.deepEqual(
    said({ MYSQL_PORT: '3306', HOSTNAME: 'x', LOGNAME: 'x', PROMPT: 'x', TERM: 'x' }),
    [],
  );
  const both = { TURNSTILE_SECERT: 'x', TURNSTILE_SECRET: 'y' };
  t.deepEqual(said(both), [], 'what is set as well was not meant');
});

test('settings that cannot be read are named one by one, and nothing else is said', (t) => {
  const { config, findings } = examineSettings({ ...base, PORT: 'x', AMQP_URL: 'sesame' });
  t.is(config, undefined);
  t.deepEqual(
    findings.map(({ code, level }) => [code, level]),
    [
      ['settings.unusable', 'error'],
      ['settings.unusable', 'error'],
    ],
  );
  const text = JSON.stringify(findings);
  t.regex(text, /PORT/);
  t.regex(text, /AMQP_URL/);
  t.notRegex(text, /sesame/);
});

test('every finding that is no praise says what to do', (t) => {
  const all = examineSettings({ ...base, TOTP_KEYS: '', TELEGRAM_BOT_TOKEN: '' }).findings;
  for (const { level, advice, text, code } of all) {
    t.regex(text, /^[A-Z].*\.$/, code);
    if (level !== 'ok') t.regex(advice, /^[A-Z].*\.$/, code);
  }
});

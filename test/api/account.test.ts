// Profile, settings and the webhook secret: every bound on both sides, and what a change leads to (spec section 2).
import test from 'ava';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { day, hour, minute } from '../../lib/kernel/clock.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { WEBHOOK_ALLOWED_HOSTS: 'opened.internal=*' };
  stack = await startStack('account', { clock, settings, workers: [] });
});
test.after.always(() => stack?.close());

const patch = ({ session }: Customer, what: 'profile' | 'settings', body: unknown) =>
  session.call('PATCH', `/v1/clients/${what}`, { body });

test.serial('what is named changes, the rest stays, and me says the same', async (t) => {
  const customer = await stack.customer();
  const phone = aNumber();
  const first = await patch(customer, 'profile', {
    name: 'Grace',
    company: 'Navy',
    locale: 'ar',
    phone,
  });
  t.like(first.data, { name: 'Grace', company: 'Navy', locale: 'ar', phone });
  const second = await patch(customer, 'profile', { company: null });
  t.like(second.data, { name: 'Grace', company: null, locale: 'ar', phone });
  const settings = {
    webhook_url: 'https://hooks.example.com/tessera?x=1',
    spend_cap_hourly: 12.345678,
    waba_template_language: 'pt_BR',
  };
  t.like((await patch(customer, 'settings', settings)).data, settings);
  t.like((await customer.live.get('/v1/clients/me')).data, { ...settings, name: 'Grace' });
  const none = { webhook_url: null, spend_cap_hourly: null, waba_template_language: null };
  t.like((await patch(customer, 'settings', none)).data, none);
});

test.serial('bounds of the profile', async (t) => {
  const customer = await stack.customer();
  const wrong: [object, string][] = [
    [{}, 'body'],
    [{ name: '' }, 'name'],
    [{ name: 'n'.repeat(101) }, 'name'],
    [{ name: null }, 'name'],
    [{ phone: '0123' }, 'phone'],
    [{ phone: '+10000000' }, 'phone'],
    [{ company: 'c'.repeat(121) }, 'company'],
    [{ locale: 'fr' }, 'locale'],
    [{ name: 'half \ud83d' }, 'name'],
    [{ company: 'half \ud83d' }, 'company'],
    [{ name: 'x', email: 'new@example.com' }, 'email'],
  ];
  for (const [body, field] of wrong) {
    const answer = await patch(customer, 'profile', body);
    t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field }] }, JSON.stringify(body));
  }
  const edge = { name: 'n'.repeat(100), company: 'c'.repeat(120), locale: 'en' };
  t.is((await patch(customer, 'profile', edge)).status, 200);
});

test.serial('bounds of the settings', async (t) => {
  const customer = await stack.customer();
  const url = (length: number) => `https://h.example/${'p'.repeat(length - 18)}`;
  const wrong: [object, string][] = [
    [{}, 'body'],
    [{ webhook_url: 'http://hooks.example.com' }, 'webhook_url'],
    [{ webhook_url: 'https://' }, 'webhook_url'],
    [{ webhook_url: 'https://user:pw@h.example/' }, 'webhook_url'],
    [{ webhook_url: 'https://h.example/a b' }, 'webhook_url'],
    [{ webhook_url: url(2049) }, 'webhook_url'],
    [{ webhook_url: 'https://h.example/\ud83d' }, 'webhook_url'],
    [{ spend_cap_hourly: -0.000001 }, 'spend_cap_hourly'],
    [{ spend_cap_hourly: 1_000_000.1 }, 'spend_cap_hourly'],
    [{ spend_cap_hourly: 0.1234567 }, 'spend_cap_hourly'],
    [{ spend_cap_hourly: '5' }, 'spend_cap_hourly'],
    ...['EN', 'english', 'en-US', 'en_us', ''].map((value): [object, string] => [
      { waba_template_language: value },
      'waba_template_language',
    ]),
    [{ spend_cap_hourly: 1, plan: 'free' }, 'plan'],
  ];
  for (const [body, field] of wrong) {
    const answer = await patch(customer, 'settings', body);
    t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field }] }, JSON.stringify(body));
  }
  for (const body of [
    { webhook_url: url(2048) },
    { spend_cap_hourly: 0 },
    { spend_cap_hourly: 1_000_000 },
    { waba_template_language: 'ar' },
  ]) {
    t.is((await patch(customer, 'settings', body)).status, 200, JSON.stringify(body));
  }
});

test.serial(
  'a webhook address that would never be called is refused when it is set, and says why',
  async (t) => {
    const privates = [
      ...['127.0.0.1', '10.0.0.1', '192.168.0.1', '172.16.0.1', '169.254.169.254', '100.64.0.1'],
      ...['2130706433', '0x7f.1', '0', '[::1]', '[fd00::1]', '[::ffff:10.0.0.1]', '192.0.2.1'],
    ];
    const names = [
      ...['localhost', 'redis', 'hooks.localhost', 'printer.local', 'metadata.google.internal'],
      ...['mysql.default.svc', 'MYSQL.default.SVC.cluster.local', 'nas.home.arpa', 'h.example.'],
    ];
    const rows: [string, RegExp][] = [
      ...privates.map((host): [string, RegExp] => [
        `https://${host}/hook`,
        /^names \S+, which is no public address that is called here$/,
      ]),
      ...names.map((host): [string, RegExp] => [
        `https://${host}/hook`,
        /^names \S+, a host of a private network; it must be a public name with a dot/,
      ]),
      ['https://h.example:22/', /^names port 22; allowed are 443, 8443$/],
    ];
    for (const [webhook_url, issue] of rows) {
      const customer = await stack.customer({ money: 0 });
      const { status, error } = await patch(customer, 'settings', { webhook_url });
      t.is(status, 400, webhook_url);
      t.like(error, { code: 'VALIDATION_ERROR', details: [{ field: 'webhook_url' }] }, webhook_url);
      const [detail] = (error?.details ?? []) as { issue: string }[];
      t.regex(detail?.issue ?? '', issue, webhook_url);
      t.is((await customer.session.get('/v1/clients/me')).data.webhook_url, null, webhook_url);
    }
  },
);

test.serial(
  'a host that an operator opened may be set by the accounts named, and by no other',
  async (t) => {
    const [named, other] = [await stack.customer(), await stack.customer()];
    const open = stack.api.webhookRules.open as Map<string, ReadonlySet<string>>;
    open.set('10.20.30.40', new Set([named.accountId]));
    const settings = { webhook_url: 'https://10.20.30.40:9000/hook' };
    t.is((await patch(named, 'settings', settings)).status, 200);
    t.is((await patch(other, 'settings', settings)).status, 400);
  },
);

test.serial('a rotated webhook secret signs beside the new one for a day', async (t) => {
  const { accountId, live } = await stack.customer();
  const secrets = () => signingSecrets(stack.api, accountId);
  const [first] = await secrets();
  const rotated = await live.post('/v1/clients/webhook-secret/rotate', undefined);
  const second = String(rotated.data.webhook_secret);
  t.regex(second, /^whsec_[A-Za-z0-9+/]{32}$/);
  t.is(Buffer.from(second.slice(6), 'base64').length, 24);
  const until = Date.parse(String(rotated.data.previous_valid_until));
  t.true(Math.abs(until - clock.now() - day) < minute);
  t.deepEqual(await secrets(), [second, first]);
  const third = String(
    (await live.post('/v1/clients/webhook-secret/rotate', undefined)).data.webhook_secret,
  );
  t.deepEqual(await secrets(), [third, second]);
  clock.forward(24 * hour + minute);
  t.deepEqual(await secrets(), [third]);
});

test.serial(
  'the phone, to which forgotten passwords lead, is changed by a fresh session alone',
  async (t) => {
    const customer = await stack.customer();
    const body = { phone: aNumber() };
    const byKey = await customer.live.call('PATCH', '/v1/clients/profile', { body });
    t.is(byKey.error.code, 'REAUTH_REQUIRED');
    clock.forward(10 * minute + 1);
    t.is((await patch(customer, 'profile', body)).error.code, 'REAUTH_REQUIRED');
    t.is((await patch(customer, 'profile', { name: 'Still' })).status, 200);
  },
);

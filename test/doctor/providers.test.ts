// What the doctor makes of providers' answers: each provider played with one thing wrong.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import test from 'ava';
import { examineAddresses } from '../../lib/doctor/address.ts';
import { examineMetaApp } from '../../lib/doctor/meta-app.ts';
import { watchClocks } from '../../lib/doctor/outside-clock.ts';
import { examineStripe, type ProviderDeps, stripeEvents } from '../../lib/doctor/providers.ts';
import type { Finding } from '../../lib/doctor/rules.ts';
import { examineTelegram } from '../../lib/doctor/telegram.ts';
import { examineWhatsapp } from '../../lib/doctor/whatsapp.ts';
import { createHttp } from '../../lib/infra/http.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { loadConfig } from '../../lib/kernel/config.ts';
import { testEnvironment } from '../support/settings.ts';

const engines = {
  ...{ mysql: 'mysql://u:p@127.0.0.1/db', redis: 'redis://127.0.0.1:6379/0' },
  ...{ amqp: 'amqp://u:p@127.0.0.1:5672/', prefix: 'test:' },
};
const env = testEnvironment(engines, 'http://127.0.0.1:9');
const http = createHttp({ timeoutMs: 8_000, connections: 4 });
test.after.always(() => http.close());

const depsOf = (more: Record<string, string>): ProviderDeps => ({
  ...{ http, config: loadConfig({ ...env, ...more }), clock: systemClock },
});

const wrongOf = (findings: readonly Finding[]): string[] =>
  findings.filter(({ level }) => level !== 'ok').map(({ code }) => code);

const ofWhatsapp = async (more: Record<string, string>): Promise<string[]> => {
  const [number, app] = [await examineWhatsapp(depsOf(more)), await examineMetaApp(depsOf(more))];
  return wrongOf([...number, ...app.findings]);
};
const ofStripe = async (more: Record<string, string>) => wrongOf(await examineStripe(depsOf(more)));
const ofTelegram = async (more: Record<string, string>) => {
  const { findings } = await examineTelegram(depsOf(more));
  return wrongOf(findings);
};

/** A provider that answers each path with what is given. */
const pretending = async (
  answers: Record<string, { status?: number; body: unknown }>,
  work: (url: string) => Promise<void>,
): Promise<void> => {
  const server = createServer((request, response) => {
    const path = Object.keys(answers).find((known) => request.url?.includes(known)) ?? '';
    const { status = 200, body } = answers[path] ?? { status: 404, body: {} };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

test('a number that is banned, a red rating, a paused template, no subscription', async (t) => {
  const number = { display_phone_number: '+1', status: 'BANNED', quality_rating: 'RED' };
  const template = { name: 'otp_code', language: 'en_US', status: 'PAUSED' };
  await pretending(
    {
      message_templates: { body: { data: [template] } },
      subscribed_apps: { body: { data: [] } },
      [String(env.WHATSAPP_PHONE_NUMBER_ID)]: { body: number },
    },
    async (url) => {
      t.deepEqual(await ofWhatsapp({ WHATSAPP_BASE_URL: url }), [
        ...['whatsapp.number_state', 'whatsapp.quality'],
        ...['whatsapp.template_state', 'whatsapp.unsubscribed'],
      ]);
    },
  );
});

const ofApp = (subscription: object) => ({
  subscriptions: { body: { data: [{ object: 'whatsapp_business_account', ...subscription }] } },
});

test('a Meta app that calls nobody, somebody else, or leaves out what we need', async (t) => {
  const number = { display_phone_number: '+1', status: 'CONNECTED', quality_rating: 'GREEN' };
  const template = { name: 'otp_code', language: 'en_US', status: 'APPROVED' };
  const sound = {
    message_templates: { body: { data: [template] } },
    subscribed_apps: { body: { data: [{ whatsapp_business_api_data: { id: '7' } }] } },
    [String(env.WHATSAPP_PHONE_NUMBER_ID)]: { body: number },
  };
  const url = `http://127.0.0.1:9/v1/inbound/whatsapp`;
  const fields = [{ name: 'message_template_status_update' }];
  const id = { WHATSAPP_APP_ID: '7' };
  for (const [code, subscription] of [
    ['whatsapp.no_callback', { object: 'page' }],
    ['whatsapp.no_callback', { callback_url: url, active: false, fields }],
    ['whatsapp.elsewhere', { callback_url: 'https://old.example/hook', active: true, fields }],
    ['whatsapp.fields', { callback_url: url, active: true, fields }],
  ] as const) {
    await pretending({ ...sound, ...ofApp(subscription) }, async (base) => {
      t.deepEqual(await ofWhatsapp({ ...id, WHATSAPP_BASE_URL: base }), [code]);
    });
  }
  const hears = { callback_url: url, active: true, fields: [] };
  await pretending({ ...sound, ...ofApp(hears) }, async (base) => {
    const other = { WHATSAPP_APP_ID: '8', WHATSAPP_BASE_URL: base };
    t.deepEqual((await ofWhatsapp(other)).sort(), ['whatsapp.fields', 'whatsapp.other_app']);
  });
});

test('Stripe that calls nobody, or does not tell of all', async (t) => {
  const endpoint = { status: 'enabled', url: 'https://shop.example/v1/inbound/payments' };
  for (const [code, data] of [
    ['stripe.no_webhook', []],
    ['stripe.no_webhook', [{ ...endpoint, status: 'disabled', enabled_events: ['*'] }]],
    ['stripe.events', [{ ...endpoint, enabled_events: ['checkout.session.completed'] }]],
    [undefined, [{ ...endpoint, enabled_events: stripeEvents }]],
    [undefined, [{ ...endpoint, enabled_events: ['*'] }]],
  ] as const) {
    const answers = { sessions: { body: { data: [] } }, webhook_endpoints: { body: { data } } };
    await pretending(answers, async (base) => {
      t.deepEqual(await ofStripe({ STRIPE_BASE_URL: base }), code === undefined ? [] : [code]);
    });
  }
  const page = readFileSync(join(import.meta.dirname, '../../docs/self-hosting.md'), 'utf8');
  for (const event of stripeEvents) t.true(page.includes(`\`${event}\``), event);
});

test('Stripe that does not take the key', async (t) => {
  await pretending({ sessions: { status: 401, body: { error: {} } } }, async (url) => {
    t.deepEqual(await ofStripe({ STRIPE_BASE_URL: url }), ['stripe.key']);
  });
});

const hooked = (hook: Record<string, unknown>) => ({
  getMe: { body: { ok: true, result: { username: env.TELEGRAM_BOT_USERNAME } } },
  getWebhookInfo: { body: { ok: true, result: hook } },
});

test('a webhook of Telegram that is missing, elsewhere, failing or behind', async (t) => {
  const url = `http://127.0.0.1:9/v1/inbound/telegram`;
  const now = Math.floor(Date.now() / 1000);
  for (const [code, hook] of [
    ['telegram.no_webhook', { url: '' }],
    ['telegram.elsewhere', { url: 'https://old.example/bot' }],
    ['telegram.undelivered', { url, last_error_date: now - 60, last_error_message: '403' }],
    ['telegram.pending', { url, pending_update_count: 5_000 }],
  ] as const) {
    await pretending(hooked(hook), async (base) => {
      t.deepEqual(await ofTelegram({ TELEGRAM_BASE_URL: base }), [code]);
    });
  }
  const old = { url, last_error_date: now - 86_400, last_error_message: '403' };
  await pretending(hooked(old), async (base) => {
    t.deepEqual(await ofTelegram({ TELEGRAM_BASE_URL: base }), [], 'what failed yesterday is past');
  });
});

test('only a webhook that is ours tells our public address', async (t) => {
  for (const [url, told] of [
    ['https://verify.example/v1/inbound/telegram', true],
    ['https://old.example/bot', false],
  ] as const) {
    await pretending(hooked({ url }), async (base) => {
      const { address } = await examineTelegram(depsOf({ TELEGRAM_BASE_URL: base }));
      t.is(address, told ? url : undefined);
    });
  }
});

test('a public address that leads nowhere, to somebody ill, or through a proxy nobody counted', async (t) => {
  const { config } = depsOf({});
  const look = async (...called: (string | undefined)[]) =>
    wrongOf(await examineAddresses(http, config, called));
  t.deepEqual(await look('http://127.0.0.1:9/v1/inbound/telegram'), ['inbound.unreachable']);
  t.deepEqual(await look(undefined), []);
  for (const [status, codes] of [
    [200, []],
    [503, ['inbound.unhealthy']],
  ] as const) {
    await pretending({ health: { status, body: {} } }, async (base) => {
      t.deepEqual(await look(`${base}/v1/inbound/telegram`, `${base}/v1/inbound/whatsapp`), codes);
    });
  }
  const secure = 'https://127.0.0.1:9/v1/inbound/whatsapp';
  t.deepEqual(await look(secure), ['inbound.unreachable', 'settings.proxies']);
  const counted = { ...config, trustedProxies: 1 };
  t.deepEqual(wrongOf(await examineAddresses(http, counted, [secure])), ['inbound.unreachable']);
});

test('the time is that of the quickest answer outside of this machine', async (t) => {
  for (const [date, code] of [
    [new Date(), 'clock.right'],
    [new Date(Date.now() + 8_000), 'clock.off'],
    [new Date(Date.now() - 3_600_000), 'clock.wrong'],
  ] as const) {
    const answers = { status: 200, text: '', date: date.toUTCString() };
    const watched = watchClocks({ ...http, send: async () => answers }, systemClock);
    t.deepEqual(watched.findings(), [], 'nobody said the time yet');
    await watched.http.send({ method: 'GET', url: 'https://graph.example/v25.0/1' });
    t.like(watched.findings(), [{ code }]);
  }
});

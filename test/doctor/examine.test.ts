// The doctor at a running installation: a sound one, and one thing broken at a time.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { describeFindings, examine } from '../../lib/doctor/examine.ts';
import type { Finding } from '../../lib/doctor/rules.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { migrationSource } from '../../migrations/source.ts';
import { testEnvironment } from '../support/settings.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let env: Record<string, string>;
let migrations: string[];

const bot = (method: string, body: unknown): Promise<Response> =>
  fetch(`${stack.sim.url}/telegram/bot${env.TELEGRAM_BOT_TOKEN}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

const setWebhook = (url: string) =>
  bot('setWebhook', { url, secret_token: env.TELEGRAM_WEBHOOK_SECRET });

test.before(async () => {
  stack = await startStack('doctor');
  const { mysqlUrl: mysql, redisUrl: redis, amqpUrls: amqp, keyPrefix: prefix } = stack.config;
  env = testEnvironment({ mysql, redis, amqp, prefix }, stack.sim.url, {
    DEPOSIT_RETURN_URL: 'https://shop.example/paid',
    TURNSTILE_SECRET: '1x0000000000000000000000000000000AA',
    TURNSTILE_SITE_KEY: '1x00000000000000000000AA',
    TURNSTILE_BASE_URL: stack.sim.url,
  });
  const files = await migrationSource.getMigrations([]);
  migrations = files.map((file) => migrationSource.getMigrationName(file));
  const { whatsapp } = (await import('../support/settings.ts')).shared;
  await fetch(`${stack.sim.url}/graph/v25.0/${whatsapp.wabaId}/subscribed_apps`, {
    method: 'POST',
    headers: { authorization: `Bearer ${whatsapp.accessToken}` },
  });
  await setWebhook(`${stack.url}/v1/inbound/telegram`);
});
test.after.always(() => stack?.close());

const look = (more: Record<string, string> = {}, known = migrations): Promise<Finding[]> =>
  examine({ env: { ...env, ...more }, clock: systemClock, migrations: known });

/** What is wrong; Redis of the tests keeps no file, which is said each time. */
const wrong = async (...given: Parameters<typeof look>): Promise<string[]> =>
  (await look(...given))
    .filter(({ level, code }) => level !== 'ok' && code !== 'redis.forgets')
    .map(({ code }) => code);

test.serial('a sound installation has nothing against it, and each part is named', async (t) => {
  const findings = await look();
  t.deepEqual(await wrong(), []);
  const codes = new Set(findings.map(({ code }) => code));
  for (const code of [
    ...['settings.sound', 'engine.version', 'schema.current', 'clock.right', 'queue.flows'],
    ...['whatsapp.number', 'whatsapp.template', 'whatsapp.subscribed', 'telegram.bot'],
    ...['telegram.webhook', 'inbound.reachable', 'stripe.key_taken', 'turnstile.secret_taken'],
    ...['webhooks.taken', 'whatsapp.callback'],
  ]) {
    t.true(codes.has(code), code);
  }
  t.is(findings.filter(({ code }) => code === 'engine.version').length, 3);
  t.regex(describeFindings(findings), /Engines\n {2}ok .*\n[\s\S]*\nQueues\n/);
});

/** The address with another part; `sesame` must not be heard of again. */
const changed = (variable: string, change: Partial<Pick<URL, 'password' | 'pathname' | 'host'>>) =>
  Object.assign(new URL(env[variable] ?? ''), change).href;

for (const [what, variable, change, code] of [
  ['MySQL away', 'MYSQL_URL', { host: '127.0.0.1:9', password: 'sesame' }, 'engine.refused'],
  ['MySQL with a wrong password', 'MYSQL_URL', { password: 'sesame' }, 'engine.login'],
  ['MySQL without the database', 'MYSQL_URL', { pathname: '/t_none' }, 'engine.no_database'],
  ['Redis away', 'REDIS_URL', { host: '127.0.0.1:9', password: 'sesame' }, 'engine.refused'],
  ['RabbitMQ away', 'AMQP_URL', { host: '127.0.0.1:9', password: 'sesame' }, 'engine.refused'],
  ['RabbitMQ with a wrong password', 'AMQP_URL', { password: 'sesame' }, 'engine.login'],
  ['RabbitMQ without the virtual host', 'AMQP_URL', { pathname: '/none' }, 'engine.no_vhost'],
] as const) {
  test.serial(`${what} is said, and the password is not`, async (t) => {
    const url = changed(variable, change);
    const findings = await look({ [variable]: url });
    const found = findings.filter(({ level }) => level === 'error');
    t.deepEqual(
      found.map(({ code: each }) => each),
      [code],
    );
    t.true(found[0]?.text.includes(what.split(' ')[0] ?? '-'));
    const { password } = new URL(url);
    if (password) t.false(JSON.stringify(findings).includes(password));
  });
}

test.serial('a process that ignores X-Forwarded-For for want of a setting is named', async (t) => {
  const headers = { 'X-Forwarded-For': '203.0.113.7' };
  await stack.anybody.get('/health', headers);
  const found = await eventually(t, async () =>
    (await look()).find(({ code }) => code === 'settings.forwarded'),
  );
  t.regex(found.text, /^api@.* gets requests with X-Forwarded-For, but TRUSTED_PROXIES is not set/);
  stack.api.activity.forwardedIgnored = false;
  await eventually(t, async () => (await wrong()).length === 0 || undefined);
});

test.serial('a Redis that asks for a password is told from one that is away', async (t) => {
  const { createServer: listen } = await import('node:net');
  const server = listen((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const commands = String(data).match(/^\*\d+\r$/gm) ?? [];
      socket.write('-NOAUTH Authentication required.\r\n'.repeat(commands.length));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  t.deepEqual(await wrong({ REDIS_URL: `redis://127.0.0.1:${port}/0` }), ['engine.login']);
  server.close();
});

test.serial('migrations that did not run are said', async (t) => {
  t.deepEqual(await wrong({}, [...migrations, '9999-tomorrow']), ['schema.old']);
});

test.serial('a clock that is off is said', async (t) => {
  const late = { now: () => Date.now() - 60_000 };
  const findings = await examine({ env, clock: late, migrations });
  const found = findings.filter(({ code }) => code === 'clock.wrong');
  t.is(found.length, 3, 'MySQL, Redis, and who is asked outside of this machine');
  for (const { text } of found) t.regex(text, /ahead of this machine/);
});

test.serial('a worker that does not run and dead letters are said', async (t) => {
  await stack.stopWorkers('billing');
  await eventually(t, async () => {
    const { consumers } = await stack.api.broker.depth('billing.charge');
    return consumers === 0 ? true : undefined;
  });
  t.deepEqual(await wrong(), ['queue.idle']);
  await stack.startWorkers('billing');
  // A job that no worker can read is dead at once.
  const { connect } = await import('amqplib');
  const model = await connect(stack.config.amqpUrls);
  const channel = await model.createConfirmChannel();
  channel.publish('job', 'billing.charge', Buffer.from('{"nonsense":true}'));
  await channel.waitForConfirms();
  await model.close();
  await eventually(t, async () => {
    const { ready } = await stack.api.broker.depth('billing.charge.dead');
    return ready === 1 ? true : undefined;
  });
  t.deepEqual(await wrong(), ['queue.dead']);
  const page = describeFindings(await look());
  t.regex(page, /warning {2}1 dead letter in billing\.charge\.dead\.\n {11}→ Read their reasons/);
  const { connect: again } = await import('amqplib');
  const cleaning = await again(stack.config.amqpUrls);
  await (await cleaning.createChannel()).purgeQueue('billing.charge.dead');
  await cleaning.close();
});

test.serial('queues that were never declared are said', async (t) => {
  const { createVhost } = await import('../support/vhosts.ts');
  const empty = await createVhost('doctor_empty');
  const found = await wrong({ AMQP_URL: empty.url });
  t.deepEqual([...new Set(found)], ['queue.missing']);
  await empty.drop();
});

for (const [code, more] of [
  ['whatsapp.token', { WHATSAPP_ACCESS_TOKEN: 'gone' }],
  ['whatsapp.refused', { WHATSAPP_PHONE_NUMBER_ID: '1' }],
  ['whatsapp.no_template', { WHATSAPP_TEMPLATE_LANGUAGE: 'fr' }],
  ['whatsapp.no_waba', { WHATSAPP_WABA_ID: '' }],
  ['whatsapp.no_app_id', { WHATSAPP_APP_ID: '' }],
  ['whatsapp.app', { WHATSAPP_APP_SECRET: 'sesame' }],
  ['management.away', { RABBITMQ_MANAGEMENT_URL: 'http://u:sesame@127.0.0.1:9' }],
  ['whatsapp.away', { WHATSAPP_BASE_URL: 'http://127.0.0.1:9' }],
  ['telegram.token', { TELEGRAM_BOT_TOKEN: '1:x' }],
  ['telegram.name', { TELEGRAM_BOT_USERNAME: 'another_bot' }],
  ['telegram.away', { TELEGRAM_BASE_URL: 'http://127.0.0.1:9' }],
  ['stripe.away', { STRIPE_BASE_URL: 'http://127.0.0.1:9' }],
  ['turnstile.away', { TURNSTILE_BASE_URL: 'http://127.0.0.1:9' }],
  ['turnstile.secret', { TURNSTILE_SECRET: 'gone' }],
] as const) {
  test.serial(`it finds ${code}`, async (t) => {
    t.deepEqual(await wrong(more), [code]);
    t.notRegex(JSON.stringify(await look(more)), /sesame/);
  });
}

test.serial('endpoints of customers that are given up or failing are counted', async (t) => {
  const [one, other] = [await stack.customer(), await stack.customer()];
  const accounts = () => stack.api.db('accounts');
  const { idBytes } = await import('../../lib/kernel/ids.ts');
  const hourAgo = Date.now() - 3 * 3_600_000;
  const webhook_url = 'https://customer.example/hook';
  await accounts()
    .where({ id: idBytes(one.accountId) })
    .update({ webhook_url, webhook_disabled_at: hourAgo });
  await accounts()
    .where({ id: idBytes(other.accountId) })
    .update({ webhook_url, webhook_failing_since: hourAgo });
  t.deepEqual(await wrong(), ['webhooks.given_up', 'webhooks.failing']);
  t.regex(describeFindings(await look()), /1 of 2 endpoints of customers are given up/);
  await accounts().where({ webhook_url }).update({ webhook_url: null });
});

const run = (args: string[], more: Record<string, string> = {}) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const script = join(import.meta.dirname, '../../docker/doctor.ts');
    const options = { env: { ...env, ...more, PATH: process.env.PATH } };
    execFile(process.execPath, [script, ...args], options, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });

test.serial('as a command it prints a page or JSON, and ends with 0, 1 or 2', async (t) => {
  const sound = await run([]);
  t.is(sound.code, 0, sound.stdout + sound.stderr);
  t.regex(sound.stdout, /^Settings\n {2}ok {7}All \d+ settings can be read\.\n/);
  const ill = await run(['--json'], { TELEGRAM_BOT_USERNAME: 'another_bot' });
  t.is(ill.code, 1);
  const { findings } = JSON.parse(ill.stdout) as { findings: Finding[] };
  t.deepEqual(
    findings.filter(({ level }) => level === 'error').map(({ code }) => code),
    ['telegram.name'],
  );
  t.is((await run(['--strict'], { TELEGRAM_LINK_PROOF: 'tap' })).code, 1);
  const asked = await run(['--fast']);
  t.is(asked.code, 2);
  t.regex(asked.stderr, /--json and --strict, not --fast/);
});

test.serial(
  'without settings of its own it examines the stack that runs in the folder',
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'tessera-doctor-'));
    const { mysqlUrl: mysql, redisUrl: redis, amqpUrls: amqp } = stack.config;
    const engines = { mysql, redis, amqp };
    const running = { api: stack.url, ops: null, sim: stack.sim.url, engines };
    const key = (name: string) => env[name] ?? '';
    const [botId, botToken] = key('TELEGRAM_BOT_TOKEN').split(':');
    const secrets = {
      ...{ codePepper: key('CODE_PEPPERS'), phonePepper: key('PHONE_PEPPER') },
      ...{ sealingKey: key('SEALING_KEYS'), totpKey: key('TOTP_KEYS') },
      whatsappPhoneNumberId: key('WHATSAPP_PHONE_NUMBER_ID'),
      whatsappWabaId: key('WHATSAPP_WABA_ID'),
      whatsappAccessToken: key('WHATSAPP_ACCESS_TOKEN'),
      ...{ whatsappAppSecret: 'x', whatsappVerifyToken: 'x', telegramWebhookSecret: 'x' },
      ...{ telegramBotId: botId, telegramBotToken: botToken },
    };
    try {
      writeFileSync(join(folder, 'stack.json'), JSON.stringify(running));
      writeFileSync(join(folder, 'secrets.json'), JSON.stringify(secrets));
      const none = { MYSQL_URL: '', REDIS_URL: '', AMQP_URL: '', TELEGRAM_BOT_USERNAME: '' };
      const looked = await run(['--json'], { ...none, TESSERA_STATE: folder });
      const { findings } = JSON.parse(looked.stdout) as { findings: Finding[] };
      const codes = findings.map(({ code }) => code);
      for (const code of ['settings.sound', 'schema.current', 'queue.flows', 'whatsapp.template']) {
        t.true(codes.includes(code), `${code}: ${looked.stdout}`);
      }
      const nowhere = await run([], { ...none, TESSERA_STATE: tmpdir() });
      t.is(nowhere.code, 1);
      t.regex(nowhere.stdout, /error {4}MYSQL_URL is required/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

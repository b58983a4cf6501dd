// What must never be seen: codes, keys, tokens and phone numbers in logs, message headers, error bodies and names of Redis keys.
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { jobs, telegramSend } from '../../lib/jobs.ts';
import { createLog } from '../../lib/kernel/log.ts';
import { newKeyText } from '../../lib/keys/rules.ts';
import type { Answer, Client } from '../support/client.ts';
import { inChat } from '../support/control.ts';
import type { TestPhone } from '../support/phones.ts';
import { openQueues, type Queues, settled } from '../support/queues.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { shared } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

const lines: string[] = [];
const errorBodies: string[] = [];
/** Secrets by what they are; each is looked for as it stands. */
const secrets = new Map<string, string>();
const codes = new Set<string>();

let stack: Stack;
let customer: Customer;
let queues: Queues;
let redis: RedisKeys;

test.before(async () => {
  const log = createLog({
    ...{ level: 'debug', process: 'test' },
    destination: { write: (line) => lines.push(line) },
  });
  stack = await startStack('secrets', {
    log,
    settings: {
      ...{ WHATSAPP_TIMEOUT_MS: '400', WHATSAPP_ECHO_WAIT_MS: '300' },
      SEND_DEADLINE_MS: '6000',
    },
  });
  customer = await stack.customer();
  queues = await openQueues(stack.config.amqpUrls);
  redis = openRedisKeys();
  const { accessToken, appSecret, verifyToken } = shared.whatsapp;
  const { botToken, webhookSecret } = shared.telegram;
  const own = { live: customer.live.key ?? '', test: customer.test.key ?? '' };
  const providers = { accessToken, appSecret, verifyToken, botToken, webhookSecret };
  for (const [what, secret] of Object.entries({ ...own, ...providers })) secrets.set(what, secret);
  const { codePeppers, phonePepper, sealingKeys } = stack.config;
  for (const { key } of [...codePeppers, ...phonePepper, ...sealingKeys]) {
    secrets.set(`pepper or sealing key ${secrets.size}`, key.toString('base64'));
  }
});
test.after.always(async () => {
  redis?.close();
  await queues?.close();
  await stack?.close();
});

/** A code stands alone; inside an id or a time the same digits mean something else. */
const codePattern = (code: string) => new RegExp(`(?<![0-9a-f.-])${code}(?![0-9a-f.-])`, 'i');

const assertClean = (t: ExecutionContext, where: string, text: string): void => {
  for (const [what, secret] of secrets) {
    if (text.includes(secret)) t.fail(`${what} in ${where}: ${text.slice(0, 400)}`);
  }
  for (const code of codes) {
    if (codePattern(code).test(text)) t.fail(`a code in ${where}: ${text.slice(0, 400)}`);
  }
  t.notRegex(text, /"authorization"|bearer s/i, where);
};

const aPhone = (): TestPhone => {
  const phone = stack.phone();
  secrets.set(`phone ${phone.number}`, phone.number.slice(1));
  return phone;
};

const aCode = (code: string): string => {
  codes.add(code);
  return code;
};

const noting = async (answer: Promise<Answer>): Promise<Answer> => {
  const found = await answer;
  const { telegram_bot_url: link } = found.error;
  if (link !== undefined) {
    secrets.set(`link ${secrets.size}`, new URL(String(link)).searchParams.get('start') ?? '');
  }
  // The link is what this one error is for.
  if (found.status >= 400) errorBodies.push(found.text.replace(/"telegram_bot_url":"[^"]*"/, ''));
  return found;
};

const send = (by: Client, phone: TestPhone) => noting(by.send(phone.number));

test.serial('sends, delivers, verifies, links and refusals of every kind run', async (t) => {
  const [plain, delivered, far, odd] = [aPhone(), aPhone(), aPhone(), aPhone()];
  t.is((await send(customer.live, plain)).status, 200);
  const code = aCode(await plain.code());
  await noting(customer.live.verify(plain.number, aCode('904817')));
  t.is((await noting(customer.live.verify(plain.number, code))).status, 200);
  await noting(
    customer.live.deliver(delivered.number, aCode('730519'), { 'Idempotency-Key': 'k1' }),
  );
  await noting(customer.live.deliver(delivered.number, '730519', { 'Idempotency-Key': 'k1' }));
  await noting(customer.live.deliver(delivered.number, '730519'));
  for (let call = 0; call < 6; call++) {
    await noting(customer.live.verify(delivered.number, aCode('618243')));
  }
  await far.behave({ whatsapp: 'unreachable_async' });
  const refused = await send(customer.live, far);
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED');
  await far.tap(refused.error.telegram_bot_url, aPhone().number);
  await inChat(stack.sim.url, far, 'contact');
  aCode(await eventually(t, async () => (await far.code()) || undefined));
  await inChat(stack.sim.url, far, 'text', { text: `/start ${aCode('551177')} ${far.number}` });
  const failing = ['timeout', 'http_502_html', 'drop', 'token_expired', 'error:131009'];
  await Promise.all(
    failing.map(async (whatsapp) => {
      const phone = aPhone();
      await phone.behave({ whatsapp });
      await noting(customer.live.deliver(phone.number, aCode('284651')));
    }),
  );
  await far.behave({ telegram: 'http_500' });
  await noting(customer.live.deliver(far.number, aCode('447160')));
  await far.behave({ telegram: 'blocked' });
  await noting(customer.live.deliver(far.number, '447160'));
  await send(customer.test, odd);
  await noting(customer.test.verify(odd.number, aCode('123456')));
  t.true(errorBodies.length > 10);
});

test.serial('requests that are not valid run, with secrets in odd places', async (t) => {
  const phone = aPhone();
  const code = aCode('860372');
  const unknown = newKeyText('live');
  secrets.set('unknown key', unknown);
  const key = customer.live.key ?? '';
  const requests: [method: string, path: string, authorization: string, body?: string][] = [
    ['GET', `/v1/otp/status/${phone.number}`, `Bearer ${key}`],
    ['GET', `/v1/otp/status/otp_${code}`, `Bearer ${key}`],
    ['GET', `/nowhere/${key}/${code}?phone=${phone.number}`, `Bearer ${key}`],
    ['GET', `/health?key=${key}&code=${code}`, `Bearer ${key}`],
    ['POST', '/v1/otp/verify', `Bearer ${unknown}`],
    ['POST', '/v1/otp/verify', `Basic ${key}`],
    ['PUT', '/v1/otp/send', `Bearer ${key}`],
    ['POST', '/v1/otp/verify', `Bearer ${key}`, `{"phone":"${phone.number}","code":"${code}"`],
    ['POST', '/v1/otp/verify', `Bearer ${key}`, `{"phone":"${phone.number} ","code":"${code}x"}`],
    ['POST', '/v1/otp/verify', `Bearer ${key}`, `{"${phone.number}":"${code}","code":"${code}"}`],
    ['POST', '/v1/inbound/whatsapp', '', `{"code":"${code}"}`],
    ['GET', `/v1/inbound/whatsapp?hub.verify_token=${shared.whatsapp.verifyToken}`, ''],
  ];
  for (const [method, path, authorization, body = ''] of requests) {
    const headers: [string, string][] = [
      ['Authorization', authorization],
      ['Content-Type', 'application/json'],
    ];
    const answer = await sendRaw(stack.url, { method, path, headers, body });
    t.true(answer.status < 500, path);
    // A name that the caller chose for a field is said back to the caller, and to nobody else.
    if (!body.includes(`{"${phone.number}"`)) errorBodies.push(answer.body);
  }
});

test.serial(
  'what fails inside is retried and ends among the dead, without its secrets',
  async (t) => {
    const phone = aPhone();
    const code = aCode('395028');
    const said = `at ${phone.number}, code ${code}, key ${customer.live.key}, Bearer ${customer.test.key}`;
    const url = `https://api.telegram.org/bot${shared.telegram.botToken}/sendMessage`;
    const broken = sinon.stub(stack.worker.live, 'claim').rejects(new TypeError(`${said} ${url}`));
    const answering = noting(customer.live.deliver(phone.number, code));
    const seen: string[] = [];
    const look = async (queue: string): Promise<number> => {
      const found = await queues.peek(queue);
      for (const { properties, fields, content } of found) {
        assertClean(t, `the properties of ${queue}`, JSON.stringify({ properties, fields }));
        const ours = queue.startsWith('whatsapp.send');
        t.false(ours && codePattern(code).test(content.toString()), `the payload in ${queue}`);
        seen.push(queue);
      }
      return found.length;
    };
    await eventually(t, async () => (await look('whatsapp.send.wait.1s')) || undefined);
    await eventually(t, async () => (await look('whatsapp.send.wait.3s')) || undefined);
    t.true((await answering).status >= 500);
    await eventually(t, async () => (await look('whatsapp.send.dead')) || undefined);
    broken.restore();
    // A payload that is none is dead at once; why is said without repeating it.
    const fault = { phone: phone.number, code } as never;
    await stack.publishUnchecked(telegramSend, fault, { messageId: 'm2' });
    await eventually(t, async () => (await look('telegram.send.dead')) || undefined);
    t.true(new Set(seen).size >= 4);
  },
);

test.serial('no log line shows a secret, at debug level', async (t) => {
  await settled(t, stack, queues);
  t.true(lines.length > 50);
  for (const line of lines) assertClean(t, 'a log line', line);
  const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  t.true(requests.length > 30);
  for (const { route } of requests) t.true(route === 'none' || !/otp_|\d{6}/.test(route), route);
});

test.serial('no error body shows a secret', (t) => {
  for (const body of errorBodies) assertClean(t, 'an error body', body);
});

test.serial(
  'no name of a Redis key shows a secret, and no value a key, token or code',
  async (t) => {
    const prefix = stack.config.keyPrefix;
    const names = await redis.names(prefix);
    t.true(names.length > 20);
    for (const name of names) assertClean(t, 'the name of a Redis key', name.slice(prefix.length));
    const hidden = [...secrets].filter(([what]) => !what.startsWith('phone '));
    for (const [name, { value }] of await redis.snapshot(prefix)) {
      const text = Buffer.from(value, 'base64').toString('latin1');
      for (const [what, secret] of hidden) t.false(text.includes(secret), `${what} in ${name}`);
      // A test key's code is public.
      for (const code of [...codes].filter((each) => each !== '123456')) {
        if (/:(m|code|idem|link|attempt):/.test(name)) t.notRegex(text, codePattern(code), name);
      }
    }
  },
);

test.serial('no queue holds a message with a secret in its properties', async (t) => {
  const all = jobs.flatMap(({ name, retrySeconds }) => [
    ...[name, `${name}.again`],
    ...new Set(retrySeconds.map((seconds) => `${name}.wait.${seconds}s`)),
  ]);
  for (const queue of all) {
    for (const { properties } of await queues.peek(queue)) {
      assertClean(t, queue, JSON.stringify(properties));
    }
  }
  t.true(all.length > jobs.length);
});

test.serial('no table holds a key, a token or a code', async (t) => {
  const [tables] = (await stack.api.db.raw('SHOW TABLES')) as [Record<string, string>[]];
  for (const table of tables.flatMap((row) => Object.values(row))) {
    const rows = (await stack.api.db(table)) as Record<string, unknown>[];
    const text = rows
      .flatMap((row) => Object.values(row))
      .map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value)))
      .join('\n');
    for (const [what, secret] of secrets) {
      if (!what.startsWith('phone ')) t.false(text.includes(secret), `${what} in ${table}`);
    }
    for (const code of codes) t.notRegex(text, codePattern(code), `a code in ${table}`);
  }
});

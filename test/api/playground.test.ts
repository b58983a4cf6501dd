// The playground: a code without an account, and what holds against those who would abuse it.
import test from 'ava';
import { sourceOf } from '../../api/source.ts';
import { createClient } from '../support/client.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let nextSource = 0;

/** An address nobody else calls from. */
const aSource = (): string => {
  nextSource += 1;
  return `198.51.${Math.floor(nextSource / 250)}.${(nextSource % 250) + 1}`;
};

test.before(async () => {
  stack = await startStack('playground', { settings: { TRUSTED_PROXIES: '1' } });
});
test.after.always(() => stack?.close());

const sendOn = (on: Stack, phone: string, forwarded: string) =>
  on.anybody.post('/v1/playground/send', { phone }, { 'X-Forwarded-For': forwarded });
const send = (phone: string, forwarded = aSource()) => sendOn(stack, phone, forwarded);
const verify = (phone: string, code: string, forwarded = aSource()) =>
  stack.anybody.post('/v1/playground/verify', { phone, code }, { 'X-Forwarded-For': forwarded });

test('a visitor sends, sees what a phone would show, and verifies; nothing leaves the machine', async (t) => {
  const phone = stack.phone();
  const sent = await send(phone.number);
  t.is(sent.status, 200, sent.text);
  t.like(sent.data, { status: 'sent', delivery: 'sandbox', cooldown_seconds: 60 });
  const text = '123456 is your verification code. For your security, do not share this code.';
  t.deepEqual(sent.data.preview, { channel: 'whatsapp', code: '123456', text });
  t.is((await verify(phone.number, '000000')).error.code, 'INVALID_CODE');
  t.deepEqual((await verify(phone.number, '123456')).data, { verified: true });
  t.is((await verify(phone.number, '123456')).error.code, 'OTP_NOT_FOUND');
  t.deepEqual(await phone.messages(), []);
});

test('a recipient that only Telegram reaches shows the bot’s message', async (t) => {
  const { data } = await send('+15550102000');
  t.like(data.preview, { channel: 'telegram', code: '123456' });
  t.regex(String((data.preview as { text: string }).text), /^Your verification code is 123456\n/);
});

test('magic numbers give their errors here, too', async (t) => {
  for (const [phone, code] of [
    ['+15550104091', 'CHANNEL_NOT_LINKED'],
    ['+15550104021', 'INSUFFICIENT_CREDITS'],
    ['+15550104221', 'IDEMPOTENCY_KEY_REUSED'],
  ] as const) {
    t.is((await send(phone)).error.code, code);
  }
});

test('one a minute per recipient, whatever address asks', async (t) => {
  const { number } = stack.phone();
  t.is((await send(number)).status, 200);
  const again = await send(number);
  t.is(again.status, 429);
  t.like(again.error, {
    ...{ code: 'RATE_LIMIT_EXCEEDED', dimension: 'playground', limit: 1, window_seconds: 60 },
  });
  t.is(again.headers.get('retry-after'), String(again.error.retry_after_seconds));
});

test('twenty an hour per address, whatever recipient; a neighbour is not concerned', async (t) => {
  const source = aSource();
  for (let number = 0; number < 20; number++) {
    t.is((await send(stack.phone().number, source)).status, 200);
  }
  const over = await send(stack.phone().number, source);
  t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip', limit: 20 });
  t.is((await send(stack.phone().number)).status, 200);
});

test('what a caller writes into X-Forwarded-For in front of the proxy gains nothing', async (t) => {
  const real = aSource();
  for (let number = 0; number < 20; number++) {
    t.is((await send(stack.phone().number, `${aSource()}, ${real}`)).status, 200);
  }
  for (const forged of [`${aSource()}, ${real}`, `::1,127.0.0.1,${real}`, `junk, ${real}`, real]) {
    const over = await send(stack.phone().number, forged);
    t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip' }, forged);
  }
});

test('a proxy that writes the port behind the address gives nobody a fresh limit', async (t) => {
  const real = aSource();
  for (let number = 0; number < 20; number++) {
    t.is((await send(stack.phone().number, `${real}:${40_000 + number}`)).status, 200);
  }
  for (const same of [real, `${real}:50001`, `::ffff:${real}`]) {
    const over = await send(stack.phone().number, same);
    t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip' }, same);
  }
});

test('one caller is one source, however the address is written', (t) => {
  for (const [source, ...forms] of [
    ['198.51.100.7', '198.51.100.7:1', '::ffff:198.51.100.7', '::ffff:c633:6407'],
    ['2001:db8:0:1', '2001:db8:0:1::7', '2001:DB8:0:1:9:9:9:9', '[2001:db8:0:1::7]:443'],
    ['2001:db8:0:1', '[2001:db8:0:1::7]', '2001:0db8:0000:0001::'],
    ['0:0:0:0', '::1'],
    ['junk', 'junk'],
  ] as const) {
    for (const form of forms) t.is(sourceOf(form), source, form);
  }
});

test('calls that fail count, too: forty an hour per address', async (t) => {
  const source = aSource();
  for (let number = 0; number < 40; number++) {
    t.is((await send('+15550104021', source)).error.code, 'INSUFFICIENT_CREDITS');
  }
  const over = await send('+15550104021', source);
  t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip', limit: 40 });
});

test('guesses end after five for the phone and after sixty for the address', async (t) => {
  const { number } = stack.phone();
  await send(number);
  for (let guess = 0; guess < 5; guess++) await verify(number, '000000');
  t.is((await verify(number, '123456')).error.code, 'TOO_MANY_ATTEMPTS');
  const source = aSource();
  for (let guess = 0; guess < 60; guess++) {
    await verify(stack.phone().number, '000000', source);
  }
  const over = await verify(stack.phone().number, '000000', source);
  t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip', limit: 60 });
});

test('a customer’s codes for the same phone are not touched', async (t) => {
  const { live } = await stack.customer();
  const phone = stack.phone();
  t.is((await live.send(phone.number)).status, 200);
  await send(phone.number);
  for (let guess = 0; guess < 5; guess++) await verify(phone.number, '000000');
  t.deepEqual((await live.verify(phone.number, await phone.code())).data, { verified: true });
});

test('without a proxy the header counts for nothing', async (t) => {
  const bare = await startStack('playground_bare');
  try {
    for (let number = 0; number < 20; number++) {
      t.is((await sendOn(bare, bare.phone().number, aSource())).status, 200);
    }
    const over = await sendOn(bare, bare.phone().number, aSource());
    t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip' });
  } finally {
    await bare.close();
  }
});

test('behind two proxies the entry of the outer one counts', async (t) => {
  const deep = await startStack('playground_deep', { settings: { TRUSTED_PROXIES: '2' } });
  try {
    const client = aSource();
    for (let number = 0; number < 20; number++) {
      const forwarded = `${aSource()}, ${client}, 10.0.0.2`;
      t.is((await sendOn(deep, deep.phone().number, forwarded)).status, 200);
    }
    const over = await sendOn(deep, deep.phone().number, `${aSource()}, ${client}, 10.0.0.2`);
    t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'source_ip' });
    const other = await sendOn(deep, deep.phone().number, `${aSource()}, 10.0.0.2`);
    t.is(other.status, 200);
  } finally {
    await deep.close();
  }
});

test('switched to live it sends a real message, and the answer keeps its code', async (t) => {
  const real = await startStack('playground_live', { settings: { PLAYGROUND: 'live' } });
  try {
    const phone = real.phone();
    const sent = await sendOn(real, phone.number, '');
    t.like(sent.data, { delivery: 'live', preview: null });
    const code = await phone.code();
    t.regex(code, /^\d{6}$/);
    t.notRegex(sent.text, new RegExp(code));
    const visitor = createClient(real.url, undefined);
    const right = await visitor.post('/v1/playground/verify', { phone: phone.number, code });
    t.deepEqual(right.data, { verified: true });
  } finally {
    await real.close();
  }
});

test('real delivery ends at a hundred an hour over all visitors', async (t) => {
  const settings = { PLAYGROUND: 'live', TRUSTED_PROXIES: '1' };
  const real = await startStack('playground_most', { settings });
  try {
    for (let number = 0; number < 100; number++) {
      await real.api.reads.take('playground_live', 'all');
    }
    const phone = real.phone();
    const over = await sendOn(real, phone.number, aSource());
    t.like(over.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'playground', limit: 100 });
    t.deepEqual(await phone.messages(), []);
  } finally {
    await real.close();
  }
});

test('switched off it is not there; with Turnstile it asks for a person', async (t) => {
  const off = await startStack('playground_off', { settings: { PLAYGROUND: 'off' }, workers: [] });
  const settings = {
    ...{ TURNSTILE_SECRET: '1x0000000000000000000000000000000AA' },
    TURNSTILE_BASE_URL: stack.sim.url,
  };
  const guarded = await startStack('playground_human', { settings });
  try {
    t.is((await sendOn(off, off.phone().number, '')).status, 404);
    const body = { phone: off.phone().number, code: '123456' };
    t.is((await off.anybody.post('/v1/playground/verify', body)).status, 404);

    const issued = await fetch(`${stack.sim.url}/turnstile/tokens`, { method: 'POST' });
    const { token } = (await issued.json()) as { token: string };
    const ask = (turnstile?: string) =>
      guarded.anybody.post('/v1/playground/send', {
        phone: guarded.phone().number,
        ...(turnstile === undefined ? {} : { turnstile_token: turnstile }),
      });
    t.like((await ask()).error.details, [{ field: 'turnstile_token' }]);
    t.like((await ask('made up')).error.details, [{ field: 'turnstile_token' }]);
    t.is((await ask(token)).status, 200);
    t.like((await ask(token)).error.details, [{ field: 'turnstile_token' }], 'works once');
  } finally {
    await Promise.all([off.close(), guarded.close()]);
  }
});

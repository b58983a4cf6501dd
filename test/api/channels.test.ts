// What a caller hears when a channel refuses, fails or keeps silent, with and without a linked Telegram (reference of Meta's codes).
import test, { type ExecutionContext } from 'ava';
import { countOf, linkTelegram } from '../support/control.ts';
import type { TestPhone } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('channels', {
    settings: {
      // No longer than the retries of the others take, which run at the same time.
      WHATSAPP_TIMEOUT_MS: '2000',
      WHATSAPP_ECHO_WAIT_MS: '2000',
      TELEGRAM_TIMEOUT_MS: '2000',
    },
  });
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

const statusOf = async (messageId: unknown) =>
  (await customer.live.get(`/v1/otp/status/${messageId}`)).data;

const isLinked = async ({ number: phone }: TestPhone) =>
  (await customer.live.call('DELETE', '/v1/otp/telegram-link', { body: { phone } })).data.unlinked;

type Expected = { status: number; code: string; members?: Record<string, unknown> };

const failed: Expected = { status: 500, code: 'DELIVERY_FAILED' };
const template: Expected = { status: 409, code: 'TEMPLATE_NOT_READY' };
const notLinked: Expected = { status: 409, code: 'CHANNEL_NOT_LINKED' };
const paused: Expected = {
  ...{ status: 503, code: 'CENTRAL_WHATSAPP_PAUSED' },
  members: { retry_after_seconds: 30 },
};
const tooMany: Expected = {
  ...{ status: 429, code: 'RATE_LIMIT_EXCEEDED' },
  members: { dimension: 'recipient', layer: 'origin', retry_after_seconds: 60 },
};

/** A code of every class, as the answer to the call and as a status webhook later. */
const refusals: [behaviour: string, expected: Expected][] = [
  ['error:131016', failed],
  ['error:130429', failed],
  ['error:131056', tooMany],
  ['error:130403', notLinked],
  ['error:132015', template],
  ['error:131009', failed],
  ['failed:131000', failed],
  ['failed:130429', failed],
  ['failed:131056', tooMany],
  ['failed:131026', notLinked],
  ['failed:131049', notLinked],
  ['failed:132015', template],
  ['failed:135000', failed],
  ['early_failed', notLinked],
  ['unreachable_sync', notLinked],
  ['unreachable_async', notLinked],
];
const unanswered: [behaviour: string, expected: Expected][] = [
  ['timeout', failed],
  ['drop', failed],
  ['http_502_html', failed],
];
// The last ones in a row make the sending number rest, which others would notice.
const broken: [behaviour: string, expected: Expected][] = [
  ['error:190', paused],
  ['failed:131042', paused],
];

const refuses = async (
  t: ExecutionContext,
  behaviour: string,
  expected: Expected,
): Promise<void> => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: behaviour });
  const refused = await customer.live.send(phone.number);
  t.is(refused.status, expected.status, refused.text);
  t.is(refused.error.code, expected.code);
  if (expected.members) t.like(refused.error, expected.members);
  const wait = refused.error.retry_after_seconds;
  t.is(refused.headers.get('retry-after'), wait === undefined ? null : String(wait));
  t.is('telegram_bot_url' in refused.error, expected.code === 'CHANNEL_NOT_LINKED');
  t.deepEqual(await phone.messages(), []);
  t.is((await customer.live.verify(phone.number, '123456')).error.code, 'OTP_NOT_FOUND');
};

const fallsBack = async (t: ExecutionContext, behaviour: string): Promise<void> => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  await phone.behave({ whatsapp: behaviour });
  const sent = await customer.live.deliver(phone.number, '604060');
  t.is(sent.status, 200, sent.text);
  const [message, ...others] = await phone.messages();
  t.like(message, { channel: 'telegram', code: '604060' });
  t.is(others.length, 0);
  t.like(await statusOf(sent.data.message_id), {
    ...{ status: 'sent', channel: 'telegram', fallback_used: true, failure_reason: null },
  });
  t.is((await customer.live.verify(phone.number, '604060')).status, 200);
};

for (const [behaviour, expected] of [...refusals, ...unanswered]) {
  test(`${behaviour}, nothing linked: ${expected.status} ${expected.code}, and nothing arrives`, (t) =>
    refuses(t, behaviour, expected));
  test(`${behaviour}, Telegram linked: 200, the code arrives there`, (t) =>
    fallsBack(t, behaviour));
}
for (const [behaviour, expected] of broken) {
  test.serial(`${behaviour}, nothing linked: ${expected.status} ${expected.code}`, (t) =>
    refuses(t, behaviour, expected),
  );
  test.serial(`${behaviour}, Telegram linked: 200, the code arrives there`, (t) =>
    fallsBack(t, behaviour),
  );
}

for (const behaviour of ['accept_then_drop', 'accept_then_hang', 'slow', 'early_statuses']) {
  test(`${behaviour}: the echo tells that it was sent: 200, and WhatsApp took it once`, async (t) => {
    const phone = stack.phone();
    await phone.behave({ whatsapp: behaviour });
    const sent = await customer.live.send(phone.number);
    t.is(sent.status, 200, sent.text);
    t.deepEqual(await countOf(stack.sim.url, sent.data.message_id), { accepted: 1, delivered: 1 });
    t.is((await phone.messages()).length, 1);
    await eventually(t, async () => {
      const { delivered_at: at } = await statusOf(sent.data.message_id);
      return at === null ? undefined : at;
    });
    t.is((await customer.live.verify(phone.number, await phone.code())).status, 200);
  });
}

for (const behaviour of ['blocked', 'deactivated', 'chat_not_found']) {
  test(`Telegram ${behaviour}: 409 CHANNEL_NOT_LINKED with a fresh link, and unlinked`, async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    await phone.behave({ whatsapp: 'unreachable_sync', telegram: behaviour });
    const refused = await customer.live.send(phone.number);
    t.is(refused.error.code, 'CHANNEL_NOT_LINKED', refused.text);
    t.regex(String(refused.error.telegram_bot_url), /^https:\/\/t\.me\//);
    t.false(await isLinked(phone));
    t.deepEqual(await phone.messages(), []);
  });
}

for (const [behaviour, wait] of [
  ['rate_limited', 30],
  ['rate_limited_briefly', 1],
  ['http_500', 30],
  ['http_502_html', 30],
  ['timeout', 30],
  ['unauthorized', 30],
] as const) {
  test(`Telegram ${behaviour}: 503 TELEGRAM_UNAVAILABLE, and still linked`, async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    await phone.behave({ whatsapp: 'unreachable_sync', telegram: behaviour });
    const refused = await customer.live.send(phone.number);
    t.is(refused.status, 503, refused.text);
    t.is(refused.error.code, 'TELEGRAM_UNAVAILABLE');
    t.is(refused.error.retry_after_seconds, wait);
    t.is(refused.headers.get('retry-after'), String(wait));
    await phone.behave({ telegram: 'ok' });
    const again = await customer.live.send(phone.number);
    t.is(again.status, 200, 'the same user may try again at once, and Telegram is tried first');
    t.is((await phone.messages()).length, 1);
    t.true(await isLinked(phone));
  });
}

test('Telegram takes a message and never says so: 503, one message, its code verifies, its key stays with it', async (t) => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  await phone.behave({ whatsapp: 'unreachable_sync', telegram: 'accept_then_hang' });
  const once = { 'Idempotency-Key': `unsure-${phone.number}` };
  const refused = await customer.live.send(phone.number, once);
  t.is(refused.error.code, 'TELEGRAM_UNAVAILABLE', refused.text);
  await phone.behave({ telegram: 'ok' });
  const again = await customer.live.send(phone.number, once);
  t.is(again.error.code, 'IDEMPOTENCY_KEY_IN_PROGRESS', again.text);
  const [message, ...others] = await phone.messages();
  t.deepEqual(others, []);
  t.is((await customer.live.verify(phone.number, message?.code ?? '')).status, 200);
});

test('Telegram refuses after a template that is not ready: the fallback’s own failure is told', async (t) => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  await phone.behave({ whatsapp: 'template_paused', telegram: 'http_500' });
  t.is((await customer.live.send(phone.number)).error.code, 'TELEGRAM_UNAVAILABLE');
  await phone.behave({ whatsapp: 'template_paused', telegram: 'blocked' });
  t.is((await customer.live.send(phone.number)).error.code, 'TEMPLATE_NOT_READY');
});

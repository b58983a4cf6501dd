// Test keys: the fixed code, every magic number at its stage, and the same road for jobs and events as live ones (spec section 5.4).
import test from 'ava';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import { sandboxCode } from '../../lib/otp/rules.ts';
import { type MagicNumber, magicNumbers, sandboxLinkedPhone } from '../../lib/otp/sandbox.ts';
import type { Answer } from '../support/client.ts';
import { eventsOf } from '../support/events.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('sandbox');
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

const statusOf = async (messageId: unknown) =>
  (await customer.test.get(`/v1/otp/status/${messageId}`)).data;

test('a send brings 123456 and takes the road of a live one: delivered, verified, with its events', async (t) => {
  const phone = stack.phone();
  const sent = await customer.test.send(phone.number);
  t.is(sent.status, 200);
  t.like(sent.data, { status: 'sent', cooldown_seconds: 30 });
  const id = sent.data.message_id;
  await eventually(t, async () => (await statusOf(id)).delivered_at ?? undefined);
  t.is((await customer.test.verify(phone.number, '654321')).error.code, 'INVALID_CODE');
  t.deepEqual((await customer.test.verify(phone.number, sandboxCode)).data, { verified: true });
  t.is((await customer.test.verify(phone.number, sandboxCode)).error.code, 'OTP_NOT_FOUND');
  t.like(await statusOf(id), { status: 'verified', mode: 'test', channel: 'whatsapp' });
  const events = await eventually(t, async () => {
    const types = await eventsOf(stack, id);
    return types.length === 3 ? types : undefined;
  });
  t.deepEqual(events, ['otp.sent', 'otp.delivered', 'otp.verified']);
  t.deepEqual(await phone.messages(), []);
});

test('a deliver verifies with the caller’s own code', async (t) => {
  const phone = aNumber();
  t.is((await customer.test.deliver(phone, '909090')).status, 200);
  t.is((await customer.test.verify(phone, sandboxCode)).error.code, 'INVALID_CODE');
  t.is((await customer.test.verify(phone, '909090')).status, 200);
});

test('limits, cooldown and Idempotency-Keys are those of live keys', async (t) => {
  const phone = aNumber();
  const once = { 'Idempotency-Key': 'sandbox' };
  const sent = await customer.test.send(phone, once);
  const again = await customer.test.send(phone, once);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is(again.data.message_id, sent.data.message_id);
  t.like((await customer.test.send(phone)).error, {
    ...{ code: 'RATE_LIMIT_EXCEEDED', reason: 'cooldown', limit: 1, window_seconds: 30 },
  });
});

const waits = new Set(
  Object.entries(errorCatalogue)
    .filter(([, { retry }]) => retry === 'after')
    .map(([code]) => code),
);

const carries = (t: Parameters<typeof eventually>[0], answer: Answer, magic: MagicNumber): void => {
  const { code, about } = magic;
  t.is(answer.error.code, code, about);
  t.is(answer.status, errorCatalogue[code].status, about);
  t.is('telegram_bot_url' in answer.error, code === 'CHANNEL_NOT_LINKED', about);
  t.is('attempts_remaining' in answer.error, code === 'INVALID_CODE', about);
  t.is('retry_after_seconds' in answer.error, waits.has(code), about);
  const wait = answer.error.retry_after_seconds;
  t.is(answer.headers.get('retry-after'), wait === undefined ? null : String(wait), about);
  if (/^(RATE_LIMIT_EXCEEDED|TOO_MANY_ATTEMPTS)$/.test(code)) {
    for (const member of ['reason', 'layer', 'dimension', 'reset_at', 'window_seconds', 'limit']) {
      t.true(member in answer.error, `${about} ${member}`);
    }
  }
};

const sendStages = magicNumbers.filter(({ stage }) => stage === 'admission' || stage === 'channel');

for (const magic of sendStages) {
  test(`${magic.phone}: a send and a deliver answer ${magic.code}`, async (t) => {
    carries(t, await customer.test.send(magic.phone), magic);
    carries(t, await customer.test.deliver(magic.phone, '112233'), magic);
    // Nothing was sent: the number answers the same again and again, however fast.
    carries(t, await customer.test.send(magic.phone), magic);
    t.is((await customer.test.verify(magic.phone, sandboxCode)).error.code, 'OTP_NOT_FOUND');
  });
}

for (const magic of magicNumbers.filter(({ stage }) => stage === 'verify')) {
  test(`${magic.phone}: a send is taken, a verify answers ${magic.code}`, async (t) => {
    const sent = await customer.test.send(magic.phone);
    t.is(sent.status, 200, sent.text);
    carries(t, await customer.test.verify(magic.phone, sandboxCode), magic);
    const stands = magic.code === 'BILLING_ERROR' ? 'verified' : 'sent';
    await eventually(t, async () =>
      (await statusOf(sent.data.message_id)).status === stands ? true : undefined,
    );
  });
}

test('after BILLING_ERROR the verification stands, with its event', async (t) => {
  const phone = magicNumbers.find(({ code }) => code === 'BILLING_ERROR')?.phone ?? '';
  const other = await stack.customer();
  const sent = await other.test.send(phone);
  t.is((await other.test.verify(phone, sandboxCode)).error.code, 'BILLING_ERROR');
  await eventually(
    t,
    async () => (await eventsOf(stack, sent.data.message_id)).includes('otp.verified') || undefined,
  );
  t.is((await other.test.verify(phone, sandboxCode)).error.code, 'OTP_NOT_FOUND');
});

test('the linked number is reached over Telegram', async (t) => {
  const sent = await customer.test.send(sandboxLinkedPhone);
  t.is(sent.status, 200, sent.text);
  t.like(await statusOf(sent.data.message_id), { channel: 'telegram', fallback_used: true });
  t.is((await customer.test.verify(sandboxLinkedPhone, sandboxCode)).status, 200);
});

test('every error that a send or verify can give has its number, each once', (t) => {
  const phones = magicNumbers.map(({ phone }) => phone);
  t.is(new Set(phones).size, phones.length);
  const codes = new Set(magicNumbers.map(({ code }) => code));
  const told = Object.keys(errorCatalogue) as (keyof typeof errorCatalogue)[];
  // What the door itself answers, and what belongs to TOTP, sessions and accounts.
  const elsewhere =
    /^(VALIDATION|INVALID_API|ACCOUNT_|NOT_FOUND|METHOD|PAYLOAD|UNSUPPORTED_M|TOTP|ALREADY|INVALID_SESSION|INVALID_CRED|REAUTH|EMAIL|TURNSTILE|KEY_MANAGEMENT|CAPACITY_)/;
  t.deepEqual(
    told.filter((code) => !codes.has(code) && !elsewhere.test(code)),
    [],
  );
});

test('magic numbers are numbers like any other to a live key', async (t) => {
  for (const { phone } of magicNumbers.slice(0, 3)) {
    const answer = await customer.live.send(phone);
    t.true(answer.status === 200 || answer.error.code === 'INVALID_PHONE', answer.text);
  }
});

test.serial('nothing of the sandbox reaches a provider', async (t) => {
  const fresh = await stack.customer();
  await Promise.all([
    ...sendStages.map(({ phone }) => fresh.test.send(phone)),
    fresh.test.send(aNumber()),
  ]);
  const { whatsapp, telegram } = stack.sim.stats();
  t.deepEqual({ whatsapp, telegram }, { whatsapp: {}, telegram: {} });
});

// Sending and verifying through HTTP, the broker, the workers and the simulated phones (spec sections 3, 4 and 7).
import test from 'ava';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('send');
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

const statusOf = async (messageId: unknown) =>
  (await customer.live.get(`/v1/otp/status/${messageId}`)).data;

test('200: a code reaches the phone, verifies once, and the status follows', async (t) => {
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number);
  t.is(sent.status, 200);
  t.is(sent.data.status, 'sent');
  t.true(Number(sent.data.expires_in) > 290 && Number(sent.data.expires_in) <= 300);
  t.is(sent.data.cooldown_seconds, 30);
  t.regex(await phone.code(), /^\d{6}$/);
  t.is((await statusOf(sent.data.message_id)).status, 'sent');
  const verified = await customer.live.verify(phone.number, await phone.code());
  t.deepEqual(verified.data, { verified: true });
  const status = await statusOf(sent.data.message_id);
  t.like(status, { status: 'verified', channel: 'whatsapp', mode: 'live', fallback_used: false });
  t.is((await customer.live.verify(phone.number, await phone.code())).error.code, 'OTP_NOT_FOUND');
});

test('200: deliver sends the caller’s own code', async (t) => {
  const phone = stack.phone();
  t.is((await customer.live.deliver(phone.number, '040506')).status, 200);
  t.is(await phone.code(), '040506');
  t.is((await customer.live.verify(phone.number, '040506')).status, 200);
});

test('400 OTP_NOT_FOUND for a phone that got no code', async (t) => {
  t.is((await customer.live.verify(stack.phone().number, '123456')).error.code, 'OTP_NOT_FOUND');
});

test('400 INVALID_CODE counts down, then 429 for the right code too', async (t) => {
  const phone = stack.phone();
  await customer.live.deliver(phone.number, '111111');
  for (const left of [4, 3, 2, 1, 0]) {
    const wrong = await customer.live.verify(phone.number, '222222');
    t.like(wrong.error, { code: 'INVALID_CODE', attempts_remaining: left });
  }
  const blocked = await customer.live.verify(phone.number, '111111');
  t.is(blocked.status, 429);
  t.is(blocked.error.code, 'TOO_MANY_ATTEMPTS');
  t.true(Number(blocked.headers.get('retry-after')) > 890);
});

test('409 CHANNEL_NOT_LINKED, then link and contact: a fresh code arrives on Telegram and verifies', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_async' });
  const refused = await customer.live.send(phone.number);
  t.is(refused.status, 409);
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED');
  t.is((await phone.messages()).length, 0);
  await phone.tap(refused.error.telegram_bot_url);
  const code = await eventually(t, async () => (await phone.code()) || undefined);
  t.is((await phone.messages()).find((m) => m.code !== null)?.channel, 'telegram');
  t.is(
    (
      await eventually(t, async () => {
        const answer = await customer.live.verify(phone.number, code);
        return answer.status === 200 ? answer : undefined;
      })
    ).status,
    200,
  );
  const next = await customer.live.send(phone.number);
  t.is(next.status, 200);
  t.like(await statusOf(next.data.message_id), { channel: 'telegram', fallback_used: true });
});

test('a foreign contact links nothing and brings no code', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_sync' });
  const refused = await customer.live.send(phone.number);
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED');
  await phone.tap(refused.error.telegram_bot_url, stack.phone().number);
  t.true((await phone.messages()).every((message) => message.code === null));
  t.is((await customer.live.send(phone.number)).error.code, 'CHANNEL_NOT_LINKED');
});

test('after a deliver, linking brings nothing; the caller repeats the deliver with the same code', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_sync' });
  const refused = await customer.live.deliver(phone.number, '777777', {
    'Idempotency-Key': 'deliver-1',
  });
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED');
  await phone.tap(refused.error.telegram_bot_url);
  t.true((await phone.messages()).every((message) => message.code === null));
  const again = await customer.live.deliver(phone.number, '777777', {
    'Idempotency-Key': 'deliver-1',
  });
  t.is(again.status, 200);
  t.is(await phone.code(), '777777');
});

test('a link works once, and only for the first who taps it', async (t) => {
  const [owner, other] = [stack.phone(), stack.phone()];
  const issued = await customer.live.post('/v1/otp/telegram-link', { phone: owner.number });
  t.is(issued.data.expires_in, 900);
  await owner.tap(issued.data.telegram_bot_url);
  const heard = await other.tap(issued.data.telegram_bot_url);
  t.regex(heard.join(), /not valid any more/);
  await owner.behave({ whatsapp: 'unreachable_sync' });
  t.is((await customer.live.send(owner.number)).status, 200);
  const gone = await customer.live.call('DELETE', '/v1/otp/telegram-link', {
    body: { phone: owner.number },
  });
  t.deepEqual(gone.data, { unlinked: true });
});

test('409 TEMPLATE_NOT_READY when the template is not approved and nothing is linked', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'template_not_approved' });
  t.is((await customer.live.send(phone.number)).error.code, 'TEMPLATE_NOT_READY');
});

test('503 CENTRAL_WHATSAPP_PAUSED when the shared number cannot send', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'token_expired' });
  const refused = await customer.live.send(phone.number);
  t.is(refused.error.code, 'CENTRAL_WHATSAPP_PAUSED');
  t.truthy(refused.headers.get('retry-after'));
});

test('500 DELIVERY_FAILED when the channel keeps failing; the phone may be tried again at once', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'http_500' });
  t.is((await customer.live.send(phone.number)).error.code, 'DELIVERY_FAILED');
  await phone.behave({ whatsapp: 'ok' });
  t.is((await customer.live.send(phone.number)).status, 200);
});

test('50 parallel sends with one Idempotency-Key: one message', async (t) => {
  const phone = stack.phone();
  const answers = await Promise.all(
    Array.from({ length: 50 }, () =>
      customer.live.send(phone.number, { 'Idempotency-Key': 'fifty' }),
    ),
  );
  t.is((await phone.messages()).length, 1);
  const sent = answers.filter(({ status }) => status === 200);
  t.true(sent.length >= 1);
  t.is(new Set(sent.map(({ data }) => data.message_id)).size, 1);
  for (const { status, error } of answers) {
    if (status !== 200) t.is(error.code, 'IDEMPOTENCY_KEY_IN_PROGRESS');
  }
  const replay = await customer.live.send(phone.number, { 'Idempotency-Key': '"fifty"' });
  t.is(replay.headers.get('idempotent-replayed'), 'true');
  t.is(replay.data.message_id, sent[0]?.data.message_id);
  const other = await customer.live.send(stack.phone().number, { 'Idempotency-Key': 'fifty' });
  t.is(other.error.code, 'IDEMPOTENCY_KEY_REUSED');
});

test('50 parallel verifies of the right code: one success', async (t) => {
  const phone = stack.phone();
  await customer.live.deliver(phone.number, '515151');
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => customer.live.verify(phone.number, '515151')),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 1);
});

test('a resend within 30 seconds is refused and leaves the older code valid', async (t) => {
  const phone = stack.phone();
  await customer.live.send(phone.number);
  const code = await phone.code();
  const refused = await customer.live.send(phone.number);
  t.like(refused.error, { code: 'RATE_LIMIT_EXCEEDED', layer: 'origin', dimension: 'recipient' });
  t.is(refused.headers.get('retry-after'), String(refused.error.retry_after_seconds));
  t.is((await customer.live.verify(phone.number, code)).status, 200);
});

test('tenants do not see each other’s messages', async (t) => {
  const sent = await customer.live.send(stack.phone().number);
  const stranger = await stack.customer();
  const path = `/v1/otp/status/${sent.data.message_id}`;
  t.is((await stranger.live.get(path)).status, 404);
  t.is((await customer.test.get(path)).status, 404);
});

test.serial(
  'deliver answers message_id, status and cooldown_seconds and nothing else, also when replayed',
  async (t) => {
    const { live } = await stack.customer();
    const { number } = stack.phone();
    const once = { 'Idempotency-Key': 'deliver-answers-three-fields' };
    const first = await live.deliver(number, '493027', once);
    t.is(first.status, 200, first.text);
    t.deepEqual(Object.keys(first.data), ['message_id', 'status', 'cooldown_seconds']);
    const replayed = await live.deliver(number, '493027', once);
    t.is(replayed.headers.get('idempotent-replayed'), 'true');
    t.deepEqual(replayed.data, first.data);
  },
);

// Sends where runs overlap, engines blink and both channels have been tried: what is known of a call is never lost.
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { minute } from '../../lib/kernel/clock.ts';
import { countOf, linkTelegram, report } from '../support/control.ts';
import { eventsOf } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { holdNext } from '../support/hold.ts';
import type { TestPhone } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;
let redis: RedisKeys;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('chedges', {
    clock,
    cuttable: true,
    settings: { WHATSAPP_TIMEOUT_MS: '1000', WHATSAPP_ECHO_WAIT_MS: '300' },
  });
  customer = await stack.customer();
  redis = openRedisKeys();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

const linked = async (behaviour: Parameters<TestPhone['behave']>[0]): Promise<TestPhone> => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  await phone.behave(behaviour);
  return phone;
};

const codesOf = async (phone: TestPhone): Promise<string[]> =>
  (await phone.messages()).flatMap(({ code }) => code ?? []);

const statusOf = async (messageId: unknown) =>
  (await customer.live.get(`/v1/otp/status/${messageId}`)).data;

const untilCode = (t: ExecutionContext, phone: TestPhone) =>
  eventually(t, async () => (await codesOf(phone))[0]);

/** WhatsApp has said that it does not reach the phone: from now on Telegram is tried first. */
const knownAway = async (phone: TestPhone): Promise<void> => {
  await phone.behave({ whatsapp: 'unreachable_async' });
  const other = await stack.customer();
  await other.live.deliver(phone.number, '111111');
};

test.serial('Redis has lost the claim when WhatsApp says yes: the code is valid', async (t) => {
  const phone = stack.phone();
  // No receipt makes up for it.
  await phone.behave({ whatsapp: 'silent' });
  const yes = holdNext(stack.worker.whatsapp, 'send');
  const sending = customer.live.deliver(phone.number, '919191');
  await yes.reached;
  await redis.remove(`${stack.config.keyPrefix}m:`);
  yes.release();
  const answer = await sending;
  t.is(answer.status, 200, answer.text);
  t.is((await customer.live.verify(phone.number, '919191')).status, 200);
  t.deepEqual(await countOf(stack.sim.url, answer.data.message_id), { accepted: 1, delivered: 0 });
});

for (const [telegram, code] of [
  ['blocked', 'CHANNEL_NOT_LINKED'],
  ['http_500', 'TELEGRAM_UNAVAILABLE'],
] as const) {
  test.serial(
    `Telegram first and ${telegram}, then WhatsApp fails by receipt: ${code}`,
    async (t) => {
      const phone = await linked({});
      await knownAway(phone);
      await phone.behave({ whatsapp: 'unreachable_async', telegram });
      const answer = await customer.live.send(phone.number);
      t.is(answer.error.code, code, answer.text);
      const row = await eventually(t, () =>
        stack.api.db('messages').where({ phone: phone.number, status: 'failed' }).first(),
      );
      t.not(row.failed_at, null);
    },
  );
}

test.serial(
  'a call without an answer keeps its key: no second message goes out under it',
  async (t) => {
    const phone = stack.phone();
    const once = { 'Idempotency-Key': 'silent' };
    await phone.behave({ whatsapp: 'timeout' });
    t.is((await customer.live.send(phone.number, once)).error.code, 'DELIVERY_FAILED');
    await phone.behave({ whatsapp: 'ok' });
    t.is((await customer.live.send(phone.number, once)).error.code, 'IDEMPOTENCY_KEY_IN_PROGRESS');
    t.deepEqual(await codesOf(phone), []);
    clock.forward(6 * minute);
    t.is(
      (await customer.live.send(phone.number, once)).status,
      200,
      'its code could not be valid now',
    );
    t.is((await codesOf(phone)).length, 1);
  },
);

test.serial(
  'a key whose message Redis has forgotten is answered from MySQL and sends nothing',
  async (t) => {
    const phone = stack.phone();
    const once = { 'Idempotency-Key': 'forgotten' };
    const lost = sinon.stub(stack.api.idempotency, 'complete').rejects(new Error('away'));
    const first = await customer.live.send(phone.number, once);
    lost.restore();
    t.is(first.status, 200);
    await eventually(t, async () =>
      (await statusOf(first.data.message_id)).status ? true : undefined,
    );
    await redis.remove(`${stack.config.keyPrefix}m:`);
    // The lock of the first call, which never ended for Redis.
    await stack.api.idempotency.unlock(
      (lost.firstCall?.args[0] ?? { keyHash: '', owner: '' }) as { keyHash: string; owner: string },
    );
    clock.forward(21 * minute);
    const again = await customer.live.send(phone.number, once);
    t.is(again.status, 200, again.text);
    t.is(again.data.message_id, first.data.message_id);
    t.is((await codesOf(phone)).length, 1);
  },
);

test.serial('a job that comes again while its call is under way waits for it', async (t) => {
  const phone = await linked({ whatsapp: 'unreachable_sync', telegram: 'slow', delay_ms: 1_500 });
  const sending = customer.live.send(phone.number);
  // It arrives at once, and the answer to the call follows.
  await untilCode(t, phone);
  stack.lines?.amqp.cut();
  stack.lines?.amqp.mend();
  const answer = await sending;
  const code = await untilCode(t, phone);
  await eventually(t, async () =>
    (await eventsOf(stack, answer.data?.message_id)).includes('otp.delivered') || !answer.data
      ? true
      : undefined,
  );
  t.not(answer.error?.code, 'DELIVERY_FAILED');
  t.is((await codesOf(phone)).length, 1);
  await eventually(t, async () => (stack.api.broker.ready() ? true : undefined));
  t.is((await customer.live.verify(phone.number, code)).status, 200);
});

test.serial('Redis away when Telegram says yes: the yes is kept', async (t) => {
  const phone = await linked({ whatsapp: 'unreachable_sync' });
  const yes = holdNext(stack.worker.telegram, 'sendCode');
  const keeping = sinon.spy(stack.worker.live, 'accept');
  const sending = customer.live.send(phone.number);
  await yes.reached;
  stack.lines?.redis.cut();
  yes.release();
  // It could not be kept at the first attempt.
  await eventually(t, () => (keeping.callCount > 0 ? true : undefined));
  await t.throwsAsync(keeping.firstCall.returnValue);
  keeping.restore();
  stack.lines?.redis.mend();
  const answer = await sending;
  await eventually(t, async () =>
    (await customer.live.get('/health')).status === 200 ? true : undefined,
  );
  t.is(answer.status, 200, answer.text);
  const [code = ''] = await codesOf(phone);
  t.is((await customer.live.verify(phone.number, code)).status, 200);
});

test.serial('a code whose life is over is not sent late', async (t) => {
  const phone = await linked({ whatsapp: 'stays_sent' });
  await stack.stopWorkers('telegram');
  const sent = await customer.live.deliver(phone.number, '515151');
  await report(stack.sim.url, phone, 'failed', 131026);
  await eventually(t, async () =>
    (await stack.worker.broker.depth('telegram.send')).ready > 0 ? true : undefined,
  );
  clock.forward(8 * minute);
  await stack.startWorkers('telegram');
  await eventually(t, async () =>
    (await stack.worker.broker.depth('telegram.send')).ready === 0 ? true : undefined,
  );
  await eventually(t, async () =>
    (await statusOf(sent.data.message_id)).failure_reason === 'not_on_channel' ? true : undefined,
  );
  t.deepEqual(
    (await phone.messages()).filter(({ channel }) => channel === 'telegram'),
    [],
  );
});

const refusedLink = async (phone: TestPhone): Promise<unknown> => {
  await phone.behave({ whatsapp: 'unreachable_sync' });
  const refused = await customer.live.send(phone.number);
  t409(refused.status);
  return refused.error.telegram_bot_url;
};
const t409 = (status: number): void => {
  if (status !== 409) throw new Error(`not refused but ${status}`);
};

test.serial(
  'a link that an old send left behind does not void the code of a later deliver',
  async (t) => {
    const phone = stack.phone();
    const url = await refusedLink(phone);
    clock.forward(minute);
    await phone.behave({ whatsapp: 'ok' });
    // WhatsApp is known not to reach the phone, and nothing else is there: it is tried all the same.
    t.is((await customer.live.deliver(phone.number, '717171')).status, 200);
    await phone.tap(url);
    await eventually(t, async () =>
      (await stack.api.links.chatOf(
        { accountId: customer.accountId, mode: 'live', phone: phone.number },
        stack.api.recipients.ofRecipient(customer.accountId, 'live', phone.number),
      )) === undefined
        ? undefined
        : true,
    );
    t.deepEqual(await codesOf(phone), ['717171']);
    t.is((await customer.live.verify(phone.number, '717171')).status, 200);
  },
);

test.serial('a send that was answered by a link is answered once', async (t) => {
  const phone = stack.phone();
  const url = await refusedLink(phone);
  await phone.tap(url);
  const code = await untilCode(t, phone);
  t.is((await customer.live.verify(phone.number, code)).status, 200);
  const another = await customer.live.post('/v1/otp/telegram-link', { phone: phone.number });
  await phone.tap(another.data.telegram_bot_url);
  await eventually(t, async () =>
    (await stack.worker.broker.depth('telegram.update')).ready === 0 ? true : undefined,
  );
  t.is((await codesOf(phone)).length, 1);
});

test.serial(
  'a wait that Telegram asks for and the caller does not have is an answer at once',
  async (t) => {
    const phone = await linked({ whatsapp: 'unreachable_sync', telegram: 'retry_after:9' });
    const startedAt = performance.now();
    const answer = await customer.live.send(phone.number);
    t.like(answer.error, { code: 'TELEGRAM_UNAVAILABLE', retry_after_seconds: 9 });
    t.true(performance.now() - startedAt < 9_000, 'before the wait was over');
  },
);

test.serial('without MySQL a refusal is still the right one, and soon', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_sync' });
  await customer.live.send(phone.number);
  stack.lines?.mysql.cut();
  const startedAt = performance.now();
  const answer = await customer.live.send(phone.number);
  const took = performance.now() - startedAt;
  stack.lines?.mysql.mend();
  t.is(answer.error.code, 'CHANNEL_NOT_LINKED', answer.text);
  t.true(took < 4_000, `${took} ms`);
  await eventually(t, async () =>
    (
      await stack.api
        .db('messages')
        .where({ phone: phone.number, failure_reason: 'not_on_channel' })
    ).length === 2
      ? true
      : undefined,
  );
});

test.serial('what Telegram was too busy to take from the bot is said again', async (t) => {
  const phone = stack.phone();
  const issued = await customer.live.post('/v1/otp/telegram-link', { phone: phone.number });
  await phone.behave({ telegram: 'rate_limited_briefly' });
  const refusals = () => stack.sim.stats().telegram?.error_429 ?? 0;
  const before = refusals();
  const tapping = phone.tap(issued.data.telegram_bot_url, null);
  await eventually(t, () => (refusals() > before ? true : undefined));
  await phone.behave({ telegram: 'ok' });
  t.is((await tapping).length, 1);
});

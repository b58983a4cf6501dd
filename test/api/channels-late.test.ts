// What happens after the caller has its answer: late failures, silence, expiry, and what is remembered of a phone.
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { countOf, linkTelegram, report } from '../support/control.ts';
import { eventsOf } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import type { TestPhone } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

// The clock is put forward between the tests, so they run one after the other.
const clock = createHandClock();
const windowMs = 2_500;
let stack: Stack;
let customer: Customer;
let redis: RedisKeys;

test.before(async () => {
  stack = await startStack('late', { clock });
  customer = await stack.customer();
  redis = openRedisKeys();
});
test.after.always(async () => {
  redis?.close();
  await stack?.close();
});

const statusOf = async (messageId: unknown, of = customer) =>
  (await of.live.get(`/v1/otp/status/${messageId}`)).data;

const untilStatus = (t: ExecutionContext, messageId: unknown, status: string) =>
  eventually(t, async () => {
    const found = await statusOf(messageId);
    return found.status === status ? found : undefined;
  });

const untilEvent = (t: ExecutionContext, messageId: unknown, type: string) =>
  eventually(t, async () => {
    const types = await eventsOf(stack, messageId);
    return types.includes(type) ? types : undefined;
  });

/** A message that WhatsApp took and reported as sent, and nothing since. */
const sentTo = async (t: ExecutionContext, phone: TestPhone, code = '313131') => {
  await phone.behave({ whatsapp: 'stays_sent' });
  const sent = await customer.live.deliver(phone.number, code);
  t.is(sent.status, 200, sent.text);
  return sent.data.message_id;
};

const untilTelegram = (t: ExecutionContext, phone: TestPhone) =>
  eventually(t, async () => (await phone.messages()).find(({ channel }) => channel === 'telegram'));

test.serial(
  'a failure after the answer, linked: the same code and message go out over Telegram',
  async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    const id = await sentTo(t, phone);
    await report(stack.sim.url, phone, 'failed', 131026);
    t.is((await untilTelegram(t, phone)).code, '313131');
    const found = await eventually(t, async () => {
      const status = await statusOf(id);
      return status.channel === 'telegram' ? status : undefined;
    });
    t.like(found, { status: 'sent', fallback_used: true, failure_reason: null });
    t.truthy(found.delivered_at);
    t.is((await customer.live.verify(phone.number, '313131')).status, 200);
    t.is((await statusOf(id)).status, 'verified');
    await untilEvent(t, id, 'otp.verified');
    t.is((await phone.messages()).length, 1);
  },
);

test.serial(
  'a failure after the answer, nothing linked: failed, and the code is void',
  async (t) => {
    const phone = stack.phone();
    const id = await sentTo(t, phone);
    await report(stack.sim.url, phone, 'failed', 131026);
    const found = await untilStatus(t, id, 'failed');
    t.like(found, { failure_reason: 'not_on_channel', fallback_used: false, verified_at: null });
    await untilEvent(t, id, 'otp.failed');
    t.is((await customer.live.verify(phone.number, '313131')).error.code, 'OTP_NOT_FOUND');
  },
);

test.serial('a late failure that is the sender’s is told as such', async (t) => {
  const phone = stack.phone();
  const id = await sentTo(t, phone);
  await report(stack.sim.url, phone, 'failed', 131042);
  t.is((await untilStatus(t, id, 'failed')).failure_reason, 'sender_unavailable');
});

test.serial('a delivery beats the failure that was reported before it', async (t) => {
  const phone = stack.phone();
  const id = await sentTo(t, phone);
  await report(stack.sim.url, phone, 'failed', 131026);
  await untilStatus(t, id, 'failed');
  await report(stack.sim.url, phone, 'delivered');
  t.like(await untilStatus(t, id, 'sent'), { failure_reason: null, channel: 'whatsapp' });
  t.is((await customer.live.verify(phone.number, '313131')).status, 200);
});

test.serial('a failure after a verification or a delivery changes nothing', async (t) => {
  const [verified, delivered] = [stack.phone(), stack.phone()];
  await linkTelegram(customer, verified);
  await linkTelegram(customer, delivered);
  const first = await sentTo(t, verified);
  t.is((await customer.live.verify(verified.number, '313131')).status, 200);
  await report(stack.sim.url, verified, 'failed', 131026);
  const second = await sentTo(t, delivered);
  await report(stack.sim.url, delivered, 'delivered');
  await eventually(t, async () => (await statusOf(second)).delivered_at ?? undefined);
  await report(stack.sim.url, delivered, 'failed', 131026);
  // A third message behind them in the same queue shows that both failures were dealt with.
  const marker = stack.phone();
  const third = await sentTo(t, marker);
  await report(stack.sim.url, marker, 'failed', 131026);
  await untilStatus(t, third, 'failed');
  t.is((await statusOf(first)).status, 'verified');
  t.is((await statusOf(second)).status, 'sent');
  t.deepEqual([...(await verified.messages()), ...(await delivered.messages())], []);
});

test.serial(
  'a phone that WhatsApp does not reach is remembered: Telegram is tried first',
  async (t) => {
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'unreachable_async' });
    t.is((await customer.live.send(phone.number)).error.code, 'CHANNEL_NOT_LINKED');
    await phone.behave({ whatsapp: 'ok' });
    await linkTelegram(customer, phone);
    await phone.behave({ whatsapp: 'ok' });
    clock.forward(10 * 60_000);
    const sent = await customer.live.deliver(phone.number, '424242');
    t.is(sent.status, 200);
    t.deepEqual(await countOf(stack.sim.url, sent.data.message_id), { accepted: 0, delivered: 0 });
    t.like((await phone.messages())[0], { channel: 'telegram', code: '424242' });
  },
);

test.serial(
  'an unknown phone is waited for, one that WhatsApp reaches is answered at once',
  async (t) => {
    const [known, unknown] = [stack.phone(), stack.phone()];
    const sent = await customer.live.send(known.number);
    await eventually(
      t,
      async () => (await statusOf(sent.data.message_id)).delivered_at ?? undefined,
    );
    const [other, timed] = [
      await stack.customer(),
      async (phone: TestPhone) => {
        await phone.behave({ whatsapp: 'silent' });
        const since = performance.now();
        t.is((await other.live.send(phone.number)).status, 200);
        return performance.now() - since;
      },
    ] as const;
    t.true((await timed(known)) < windowMs - 300);
    t.true((await timed(unknown)) >= windowMs - 50);
  },
);

test.serial(
  'no receipt within the template’s life, linked: the same code goes out over Telegram',
  async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    const id = await sentTo(t, phone, '565656');
    clock.forward(61_000);
    t.is((await untilTelegram(t, phone)).code, '565656');
    t.is((await customer.live.verify(phone.number, '565656')).status, 200);
    t.like(await statusOf(id), { status: 'verified', channel: 'telegram', fallback_used: true });
  },
);

test.serial(
  'no receipt within the template’s life, nothing linked: failed, but the code still verifies',
  async (t) => {
    const phone = stack.phone();
    const id = await sentTo(t, phone, '575757');
    clock.forward(61_000);
    t.is((await untilStatus(t, id, 'failed')).failure_reason, 'not_delivered');
    await untilEvent(t, id, 'otp.failed');
    // The phone may have been off only: whoever has the code after all is verified.
    t.is((await customer.live.verify(phone.number, '575757')).status, 200);
    t.like(await untilStatus(t, id, 'verified'), { failure_reason: null });
  },
);

test.serial('a code that nobody entered expires after five minutes', async (t) => {
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number);
  const id = sent.data.message_id;
  const code = await phone.code();
  await eventually(t, async () => (await statusOf(id)).delivered_at ?? undefined);
  clock.forward(299_000);
  t.is(
    (await customer.live.verify(phone.number, code === '000000' ? '000001' : '000000')).error.code,
    'INVALID_CODE',
  );
  clock.forward(1_500);
  t.is((await customer.live.verify(phone.number, code)).error.code, 'OTP_NOT_FOUND');
  t.like(await untilStatus(t, id, 'expired'), { verified_at: null, failure_reason: null });
  t.deepEqual(await untilEvent(t, id, 'otp.expired'), ['otp.sent', 'otp.delivered', 'otp.expired']);
  clock.forward(15 * 60_000);
});

test.serial(
  'an older code is valid until a channel has taken the newer one, and void after',
  async (t) => {
    const phone = stack.phone();
    await customer.live.deliver(phone.number, '111222');
    await phone.behave({ whatsapp: 'error:131009' });
    const other = await stack.customer();
    await other.live.deliver(phone.number, '999888');
    await customer.live.deliver(phone.number, '333444');
    const wrong = await customer.live.verify(phone.number, '333444');
    t.is(wrong.error.code, 'INVALID_CODE', 'refused by the channel: never valid');
    t.is((await customer.live.verify(phone.number, '111222')).status, 200);
  },
);

test.serial(
  'long after the reachability window nobody waits: Telegram is given the time it asks for',
  async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    await phone.behave({ whatsapp: 'silent', telegram: 'retry_after:45' });
    // No receipt came within the window.
    t.is((await customer.live.deliver(phone.number, '636363')).status, 200);
    clock.forward(30_000);
    await report(stack.sim.url, phone, 'failed', 131026);
    await eventually(t, async () =>
      (await stack.worker.broker.depth('telegram.send.wait.120s')).ready === 1 ? true : undefined,
    );
  },
);

test.serial('a code that a newer one has replaced is not sent late', async (t) => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  const older = await sentTo(t, phone, '717171');
  // Limits go by the clock of Redis, which nobody puts forward.
  await redis.remove(`${stack.config.keyPrefix}lim:`);
  clock.forward(31_000);
  await phone.behave({ whatsapp: 'ok' });
  const newer = await customer.live.deliver(phone.number, '727272');
  t.is(newer.status, 200, newer.text);
  clock.forward(31_000);
  t.is((await untilStatus(t, older, 'failed')).failure_reason, 'not_delivered');
  t.deepEqual(
    (await phone.messages()).map(({ code }) => code),
    ['727272'],
  );
  t.is((await customer.live.verify(phone.number, '727272')).status, 200);
});

/** Publishes a job of before as ops would redrive it, an hour later; resolves when it is done. */
const redriveLate = async (
  t: ExecutionContext,
  published: sinon.SinonSpy,
  [job, worker]: readonly [job: string, worker: string],
): Promise<void> => {
  const [args] = published.args.filter(([{ name }]) => name === job);
  published.restore();
  await stack.stopWorkers(worker);
  await stack.publishUnchecked(...(args as Parameters<typeof stack.publishUnchecked>));
  await redis.remove(`${stack.config.keyPrefix}m:`);
  clock.forward(60 * 60_000);
  const handled = () => stack.worker.broker.handled()[job] ?? 0;
  const before = handled();
  await stack.startWorkers(worker);
  await eventually(t, () => (handled() > before ? true : undefined));
};

test.serial('a send that is redriven when Redis has forgotten it did not fail', async (t) => {
  const phone = stack.phone();
  const published = sinon.spy(stack.api.broker, 'publish');
  const id = await sentTo(t, phone, '616161');
  t.is((await customer.live.verify(phone.number, '616161')).status, 200);
  await untilStatus(t, id, 'verified');
  await redriveLate(t, published, ['whatsapp.send', 'whatsapp']);
  t.false((await eventsOf(stack, id)).includes('otp.failed'));
  const [row] = await stack.api.db('messages').where({ phone: phone.number });
  t.like(row, { status: 'verified', failed_at: null });
});

test.serial(
  'a fallback that is redriven when Redis has forgotten it is not sent again',
  async (t) => {
    const phone = stack.phone();
    await linkTelegram(customer, phone);
    const published = sinon.spy(stack.worker.broker, 'publish');
    await sentTo(t, phone, '626262');
    await report(stack.sim.url, phone, 'failed', 131026);
    await untilTelegram(t, phone);
    await redriveLate(t, published, ['telegram.send', 'telegram']);
    t.is((await phone.messages()).length, 1);
  },
);

// Codes that were used up without a word: whoever dies or is cut off in between, each is charged once and said.
import test from 'ava';
import sinon from 'sinon';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { RedisUnavailable } from '../../lib/infra/redis.ts';
import { hour, minute } from '../../lib/kernel/clock.ts';
import { idText, newId, toMessageId } from '../../lib/kernel/ids.ts';
import { codeMacs } from '../../lib/otp/rules.ts';
import { linkTelegram } from '../support/control.ts';
import { createHandClock } from '../support/hand-clock.ts';
import type { TestPhone } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { PRICE_USD: '1', TELEGRAM_TIMEOUT_MS: '500' };
  stack = await startStack('untold', { clock, settings });
});
test.after.always(() => stack?.close());

const on = async (plan: string): Promise<Customer> => {
  const customer = await stack.customer({ money: 10 });
  await stack.api.ledger.setPlan(customer.accountId, 'trial', plan);
  await stack.api.revocations.announce();
  return customer;
};

const kindsOf = async ({ accountId }: Customer): Promise<string> =>
  (await stack.api.ledger.list(accountId, { before: undefined, limit: 100 }))
    .map(({ kind }) => kind)
    .join();

const books = async () => (await reconcile(stack.api, clock.now() + hour)).differences;

const rowOf = (phone: TestPhone) =>
  stack.api.db('messages').where({ phone: phone.number }).orderBy('id', 'desc').first();

const until = (t: Parameters<typeof eventually>[0], look: () => Promise<boolean>) =>
  eventually(t, async () => ((await look()) ? true : undefined), 20_000);

const untilCharged = (t: Parameters<typeof eventually>[0], customer: Customer) =>
  until(t, async () => (await kindsOf(customer)) === 'charge,deposit');

/** Telegram has the code and never says so: the message failed, and its code verifies. */
const unsaid = async (customer: Customer): Promise<TestPhone> => {
  const phone = stack.phone();
  await linkTelegram(customer, phone);
  await phone.behave({ whatsapp: 'unreachable_sync', telegram: 'accept_then_hang' });
  const refused = await customer.live.send(phone.number);
  if (refused.error?.code !== 'TELEGRAM_UNAVAILABLE') throw new Error(refused.text);
  return phone;
};

const failed = async (phone: TestPhone): Promise<boolean> =>
  (await rowOf(phone))?.status === 'failed';

/** A process that checks the code, and dies before it can say so to anybody. */
const verifyAndDie = async ({ accountId }: Customer, phone: TestPhone): Promise<string> => {
  const { live, recipients, peppers } = stack.api;
  const recipient = recipients.ofRecipient(accountId, 'live', phone.number);
  const macs = codeMacs(peppers, recipient, await phone.code());
  return (await live.verify(recipient, macs, clock.now(), newId())).kind;
};

const statusOf = async ({ live }: Customer, phone: TestPhone) => {
  const { id } = await rowOf(phone);
  return (await live.get(`/v1/otp/status/${toMessageId(idText(id))}`)).data.status;
};

test.serial(
  'per message: a send that nobody knew of is charged when its code is verified',
  async (t) => {
    const customer = await on('per_message');
    const phone = await unsaid(customer);
    await until(t, () => failed(phone));
    t.is((await customer.live.verify(phone.number, await phone.code())).status, 200);
    t.is(await kindsOf(customer), 'charge,deposit');
    t.deepEqual(await books(), []);
  },
);

for (const plan of ['pay_per_success', 'per_message']) {
  test.serial(
    `${plan}: the code of a failed message is charged though its verifier died`,
    async (t) => {
      const customer = await on(plan);
      const phone = await unsaid(customer);
      await until(t, () => failed(phone));
      t.is(await verifyAndDie(customer, phone), 'verified');
      t.is(await statusOf(customer, phone), 'verified', 'said from Redis until it is written down');
      clock.forward(6 * minute);
      await untilCharged(t, customer);
      t.like(await rowOf(phone), { status: 'verified', due_at: null });
      t.deepEqual(await books(), []);
    },
  );
}

test.serial('per message: what nobody knows of is held as long as its code may live', async (t) => {
  const customer = await on('per_message');
  const phone = await unsaid(customer);
  await until(t, () => failed(phone));
  const held = async () =>
    (await stack.api.credit.look(customer.accountId, { now: clock.now(), freeLeft: 0 })).micros /
    1_000_000;
  t.is(await held(), 1);
  clock.forward(6 * minute);
  await until(t, async () => (await held()) === 0);
});

test.serial('a code that a link brings is held as long as it may wait and live', async (t) => {
  const customer = await on('pay_per_success');
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_sync' });
  const { error } = await customer.live.send(phone.number);
  await phone.tap(error.telegram_bot_url);
  await until(t, async () => (await phone.messages()).some(({ code }) => code !== null));
  const heldIn = async (ms: number) =>
    (await stack.api.credit.look(customer.accountId, { now: clock.now() + ms, freeLeft: 0 }))
      .micros / 1_000_000;
  // Telegram may let it wait for four minutes, and then it lives for five.
  t.deepEqual([await heldIn(9 * minute), await heldIn(10 * minute)], [1, 0]);
});

test.serial('a failed message whose code nobody used is looked at once, at its end', async (t) => {
  const customer = await on('pay_per_success');
  const phone = await unsaid(customer);
  await until(t, () => failed(phone));
  t.not((await rowOf(phone)).due_at, null);
  clock.forward(6 * minute);
  await until(t, async () => (await rowOf(phone)).due_at === null);
  t.is(await statusOf(customer, phone), 'failed');
  t.is(await kindsOf(customer), 'deposit');
});

test.serial(
  'per message: a worker dies before its row is written, and the verifier before its word',
  async (t) => {
    const customer = await on('per_message');
    const phone = stack.phone();
    const { messages } = stack.worker;
    const merge = messages.merge.bind(messages);
    let verified = false;
    const dying = sinon.stub(messages, 'merge').callsFake((message, facts, own) => {
      if (!verified) return Promise.reject(new Error('killed'));
      return merge(message, facts, own);
    });
    t.is((await customer.live.send(phone.number)).status, 200);
    t.is(await verifyAndDie(customer, phone), 'verified');
    verified = true;
    await untilCharged(t, customer);
    dying.restore();
    clock.forward(6 * minute);
    await until(t, async () => (await rowOf(phone)).status === 'verified');
    t.deepEqual(await books(), []);
  },
);

/** Redis checks the code, and its answer does not come through; it answers again after `silentFor` questions. */
const loseTheAnswer = (silentFor: number): { restore(): void } => {
  const { live } = stack.api;
  const check = live.verify.bind(live);
  const ask = live.usedBy.bind(live);
  const lost = new RedisUnavailable('Connection is closed.');
  let silent = silentFor;
  const stubs = [
    sinon.stub(live, 'verify').callsFake(async (...given) => {
      await check(...given);
      throw lost;
    }),
    sinon.stub(live, 'usedBy').callsFake((...given) => {
      silent--;
      return silent < 0 ? ask(...given) : Promise.reject(lost);
    }),
  ];
  return {
    restore: () => {
      for (const stub of stubs) stub.restore();
    },
  };
};

test.serial('a right code whose answer is lost is verified all the same, and once', async (t) => {
  const customer = await on('pay_per_success');
  const phone = stack.phone();
  await customer.live.send(phone.number);
  const code = await phone.code();
  const lost = loseTheAnswer(2);
  const answer = await customer.live.verify(phone.number, code);
  const again = await customer.live.verify(phone.number, code);
  lost.restore();
  t.is(answer.status, 200, answer.text);
  t.is(again.error.code, 'INTERNAL_ERROR', 'this call has not used it up');
  t.is((await customer.live.verify(phone.number, code)).error.code, 'OTP_NOT_FOUND');
  t.is(await kindsOf(customer), 'charge,deposit');
});

test.serial('a wrong code whose answer is lost is no success', async (t) => {
  const customer = await on('pay_per_success');
  const phone = stack.phone();
  await customer.live.deliver(phone.number, '424242');
  const lost = loseTheAnswer(0);
  t.is((await customer.live.verify(phone.number, '111111')).error.code, 'INTERNAL_ERROR');
  lost.restore();
  t.is((await customer.live.verify(phone.number, '424242')).status, 200);
});

test.serial('Redis stays away: an error, the status tells, and the charge follows', async (t) => {
  const customer = await on('pay_per_success');
  const phone = stack.phone();
  await customer.live.send(phone.number);
  const lost = loseTheAnswer(Number.POSITIVE_INFINITY);
  const answer = customer.live.verify(phone.number, await phone.code());
  await until(t, async () => (await statusOf(customer, phone)) === 'verified');
  clock.forward(6 * minute);
  t.is((await answer).error.code, 'INTERNAL_ERROR');
  lost.restore();
  await untilCharged(t, customer);
  t.deepEqual(await books(), []);
});

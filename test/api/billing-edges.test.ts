// Money where things go wrong: news that comes late, twice or not at all never costs too much, too little or too often.
import test from 'ava';
import sinon from 'sinon';
import { judgePastDays } from '../../lib/billing/floor.ts';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { day, hour, minute } from '../../lib/kernel/clock.ts';
import { idAt, idBytes } from '../../lib/kernel/ids.ts';
import { tellLeftNews } from '../../lib/messages/news.ts';
import { appCode } from '../support/authenticator.ts';
import { report } from '../support/control.ts';
import { eventsOf, listenForEvents } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { aNumber, type TestPhone } from '../support/phones.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = {
    TRIAL_VERIFICATIONS: '2',
    PRICE_USD: '1',
    WHATSAPP_TIMEOUT_MS: '1000',
    WHATSAPP_ECHO_WAIT_MS: '500',
    SAFETY_FLOOR_MINIMUM_DAILY: '10',
  };
  stack = await startStack('edges', { clock, settings });
});
test.after.always(() => stack?.close());

const on = async (plan: string, money: number): Promise<Customer> => {
  const customer = await stack.customer({ money });
  if (plan !== 'trial') {
    await stack.api.ledger.setPlan(customer.accountId, 'trial', plan);
    await stack.api.revocations.announce();
  }
  return customer;
};

const balanceOf = async ({ session }: Customer) =>
  (await session.get('/v1/clients/billing')).data.balance;

const kindsOf = async ({ accountId }: Customer) =>
  (await stack.api.ledger.list(accountId, { before: undefined, limit: 100 }))
    .map(({ kind }) => kind)
    .reverse();

const until = async (look: () => Promise<boolean>): Promise<void> => {
  const end = Date.now() + 30_000;
  while (!(await look())) {
    if (Date.now() > end) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

const untilKinds = (customer: Customer, expected: string[]) =>
  until(async () => (await kindsOf(customer)).join() === expected.join());

const books = async () => (await reconcile(stack.api, clock.now() + hour)).differences;

const verify = async ({ live }: Customer, phone: TestPhone) =>
  live.verify(phone.number, await phone.code());

test.serial(
  'a trial of two lets two codes be open, however many are asked for at once',
  async (t) => {
    const customer = await on('trial', 0);
    const phones = Array.from({ length: 9 }, () => stack.phone());
    const sent = await Promise.all(phones.map(({ number }) => customer.live.send(number)));
    const out = phones.filter((_, index) => sent[index]?.status === 200);
    t.is(out.length, 2);
    t.is(sent.filter(({ error }) => error.code === 'FREE_TRIAL_EXHAUSTED').length, 7);
    for (const phone of out) t.is((await verify(customer, phone)).status, 200);
    t.is((await customer.session.get('/v1/clients/billing')).data.trial_remaining, 0);
  },
);

/** A send whose call has no answer: DELIVERY_FAILED, although nobody knows. */
const unanswered = async (customer: Customer, phone: TestPhone) => {
  await phone.behave({ whatsapp: 'timeout' });
  return customer.live.send(phone.number);
};

/** The number of the message that a phone was sent last, as MySQL has it. */
const lastOf = async (phone: TestPhone) =>
  stack.api.db('messages').where({ phone: phone.number }).orderBy('id', 'desc').first();

test.serial(
  'what a receipt reports long after a failure is charged like what was taken at once',
  async (t) => {
    const customer = await on('per_message', 10);
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'accept_then_hang', delay_ms: 3_000 });
    const events = await listenForEvents(stack, 'otp.sent');
    const lost = sinon.stub(stack.worker.live, 'receipt').rejects(new Error('not now'));
    const answer = await customer.live.send(phone.number);
    t.is(answer.error.code, 'DELIVERY_FAILED');
    lost.restore();
    await untilKinds(customer, ['deposit', 'charge']);
    await until(async () => events.heard.length > 0);
    await events.close();
    t.is((await verify(customer, phone)).status, 200);
    t.is(await balanceOf(customer), 9);
    t.deepEqual(await books(), []);
  },
);

test.serial(
  'a code that may become valid keeps its hold: nobody overdraws by a late arrival',
  async (t) => {
    const customer = await on('pay_per_success', 2);
    const lost = stack.phone();
    t.is((await unanswered(customer, lost)).error.code, 'DELIVERY_FAILED');
    t.is((await customer.live.send(aNumber())).status, 200);
    t.is((await customer.live.send(aNumber())).error.code, 'INSUFFICIENT_CREDITS');
    clock.forward(6 * minute);
    t.is((await customer.live.send(aNumber())).status, 200, 'its time is over');
  },
);

test.serial(
  'a failure that comes before its acceptance is recorded leaves charge and refund',
  async (t) => {
    const customer = await on('per_message', 10);
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'unreachable_async' });
    const { messages } = stack.worker;
    const merge = messages.merge.bind(messages);
    const slow = sinon.stub(messages, 'merge').callsFake(async (message, facts) => {
      if (facts.acceptedAt !== null) await new Promise((resolve) => setTimeout(resolve, 400));
      return merge(message, facts);
    });
    t.is((await customer.live.send(phone.number)).error.code, 'CHANNEL_NOT_LINKED');
    await untilKinds(customer, ['deposit', 'charge', 'refund']);
    slow.restore();
    t.is(await balanceOf(customer), 10);
    t.deepEqual(await books(), []);
  },
);

test.serial(
  'a worker that dies between an acceptance and its charge leaves charge and refund',
  async (t) => {
    const customer = await on('per_message', 10);
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'unreachable_async' });
    const { broker } = stack.worker;
    const publish = broker.publish.bind(broker);
    let died = false;
    const dying = sinon.stub(broker, 'publish').callsFake(async (job, payload, options) => {
      if (job.name !== 'billing.charge' || died) return publish(job, payload, options);
      died = true;
      throw new Error('killed');
    });
    await customer.live.send(phone.number);
    await until(async () => (await lastOf(phone))?.status === 'failed');
    await untilKinds(customer, ['deposit', 'charge', 'refund']);
    dying.restore();
    t.true(died);
    t.is(await balanceOf(customer), 10);
    t.deepEqual(await books(), []);
  },
);

test.serial('a refund is final: what arrives after it is not charged again', async (t) => {
  const customer = await on('per_message', 10);
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'stays_sent' });
  const { data } = await customer.live.send(phone.number);
  await untilKinds(customer, ['deposit', 'charge']);
  await report(stack.sim.url, phone, 'failed', 131026);
  await untilKinds(customer, ['deposit', 'charge', 'refund']);
  await report(stack.sim.url, phone, 'delivered');
  await until(async () => (await eventsOf(stack, data.message_id)).includes('otp.delivered'));
  t.deepEqual(await kindsOf(customer), ['deposit', 'charge', 'refund']);
  t.deepEqual(await books(), []);
});

test.serial(
  'a full queue of somebody else’s does not make a verification a BILLING_ERROR',
  async (t) => {
    const customer = await on('pay_per_success', 10);
    const phone = stack.phone();
    await customer.live.send(phone.number);
    const { connect } = await import('amqplib');
    const connection = await connect(stack.config.amqpUrls);
    const channel = await connection.createChannel();
    const { queue } = await channel.assertQueue('', {
      exclusive: true,
      arguments: { 'x-max-length': 0, 'x-overflow': 'reject-publish' },
    });
    await channel.bindQueue(queue, 'events', 'otp.verified');
    t.is((await verify(customer, phone)).status, 200);
    await connection.close();
    t.is(await balanceOf(customer), 9);
  },
);

test.serial('TOTP codes that are verified at once do not overdraw', async (t) => {
  const customer = await on('pay_per_success', 2);
  await stack.api.prices.setOverride(customer.accountId, 'US', 1_990_000);
  await stack.api.revocations.announce();
  const enrolled = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const phone = aNumber();
      const { data } = await customer.live.post('/v1/totp/enroll', { phone });
      return { phone, secret: String(data.secret) };
    }),
  );
  const phone = stack.phone();
  t.is((await customer.live.send(phone.number)).status, 200);
  const answers = await Promise.all(
    enrolled.map(({ phone: to, secret }) =>
      customer.live.post('/v1/totp/verify', { phone: to, code: appCode(secret, clock.now()) }),
    ),
  );
  const paid = answers.filter(({ data }) => data?.verified === true);
  t.is(paid.length, 5, 'what is left beside the hold pays for five');
  t.is((await verify(customer, phone)).status, 200);
  t.is(await balanceOf(customer), 0);
});

test.serial('a used TOTP code holds nothing', async (t) => {
  const customer = await on('trial', 0);
  const phone = aNumber();
  const { data } = await customer.live.post('/v1/totp/enroll', { phone });
  const code = appCode(String(data.secret), clock.now());
  const again = () => customer.live.post('/v1/totp/verify', { phone, code });
  t.true((await again()).data.verified);
  t.false((await again()).data.verified);
  t.false((await again()).data.verified);
  t.is((await customer.live.send(aNumber())).status, 200, 'one of the two is left');
});

test.serial('a switch of plan that could not be told is told in the next round', async (t) => {
  const customer = await on('pay_per_success', 10);
  const at = Math.floor(clock.now() / day) * day - 3 * hour;
  await stack.api
    .db('accounts')
    .where({ id: idBytes(customer.accountId) })
    .update({ floor_low_days: 2 });
  await stack.api.db('messages').insert(
    Array.from({ length: 20 }, (_, n) => ({
      id: idBytes(`${idAt(at).slice(0, 14)}7000-9000-${String(n).padStart(12, '0')}`),
      ...{ account_id: idBytes(customer.accountId), mode: 'live', origin: 'send', country: 'US' },
      ...{ phone: '+14155550123', request_id: 'r', plan: 'pay_per_success', price_micros: 0 },
      ...{ status: 'expired', accepted_at: at },
    })),
  );
  clock.forward(30 * minute);
  const events = await listenForEvents(stack, 'billing.plan_changed');
  const away = sinon.stub(stack.worker.announcer, 'announce').rejects(new Error('away'));
  await judgePastDays(stack.worker).catch(() => undefined);
  away.restore();
  t.is((await stack.api.accounts.find(customer.accountId))?.billingPlan, 'per_message');
  t.is(events.heard.length, 0);
  clock.forward(minute);
  await tellLeftNews(stack.worker);
  await until(async () => events.heard.length > 0);
  t.is(new Set(events.heard.map(({ id }) => id)).size, 1);
  t.like(events.heard[0]?.data, { from: 'pay_per_success', to: 'per_message' });
  t.is(await tellLeftNews(stack.worker), 0);
  await events.close();
});

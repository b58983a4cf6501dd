// Money over HTTP: each refusal on an account brought into that state by calls, what is charged when, and the books.
import test from 'ava';
import { hour } from '../../lib/kernel/clock.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { fund } from '../support/money.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = {
    TRIAL_VERIFICATIONS: '2',
    SHARED_NUMBER_COUNTRIES: 'US,GB',
    PRICE_USD: '0.05',
  };
  stack = await startStack('billing', { clock, settings });
});
test.after.always(() => stack?.close());

const billing = async ({ session, live }: Customer) => {
  const answer = await live.get('/v1/clients/billing');
  return (answer.status === 200 ? answer : await session.get('/v1/clients/billing')).data;
};

/** A send to a fresh phone and its verification. */
const success = async ({ live }: Customer) => {
  const phone = stack.phone();
  const sent = await live.send(phone.number);
  if (sent.status !== 200) return sent;
  return live.verify(phone.number, await phone.code());
};

const transactions = async ({ live }: Customer) =>
  (await live.get('/v1/clients/transactions')).data.items as Record<string, unknown>[];

const setPlan = async ({ accountId }: Customer, plan: string) => {
  await stack.api.ledger.setPlan(accountId, 'trial', plan);
  await stack.api.revocations.announce();
};

test.serial(
  'the trial counts successes; then a deposit is asked for, and then it pays per success',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    t.like(await billing(customer), {
      plan: 'trial',
      balance: 0,
      trial_granted: 2,
      trial_remaining: 2,
    });
    t.is((await success(customer)).status, 200);
    t.is((await customer.live.send(aNumber())).status, 200);
    t.is((await success(customer)).error.code, 'FREE_TRIAL_EXHAUSTED', 'the open code may succeed');
    clock.forward(6 * 60_000);
    t.is((await success(customer)).status, 200, 'a code that ended unverified uses nothing up');
    t.is((await billing(customer)).trial_remaining, 0);
    const exhausted = await success(customer);
    t.is(exhausted.status, 402);
    t.is(exhausted.error.code, 'FREE_TRIAL_EXHAUSTED');
    await fund(stack.api.poster, customer.accountId, 10);
    t.is((await success(customer)).status, 200);
    await eventually(t, async () =>
      (await billing(customer)).plan === 'pay_per_success' ? true : undefined,
    );
    t.is((await billing(customer)).balance, 9.95);
  },
);

test.serial('a success is charged once, at the price frozen when it was sent', async (t) => {
  const customer = await stack.customer({ money: 10 });
  await setPlan(customer, 'pay_per_success');
  const phone = stack.phone();
  await customer.live.send(phone.number);
  t.is((await billing(customer)).balance, 10, 'nothing is charged before it is verified');
  await stack.api.prices.setOverride(customer.accountId, 'US', 200_000);
  await stack.api.revocations.announce();
  t.is((await customer.live.verify(phone.number, await phone.code())).status, 200);
  t.is((await billing(customer)).balance, 9.95);
  t.like(await billing(customer), { spent_this_hour: 0.05 });
  t.is((await success(customer)).status, 200);
  t.is((await billing(customer)).balance, 9.75, 'the new price holds for the next one');
  const [newest, before] = await transactions(customer);
  t.like(newest, { kind: 'charge', amount: -0.2, balance_after: 9.75 });
  t.like(before, { kind: 'charge', amount: -0.05, balance_after: 9.95 });
  t.regex(String(before?.reference), /^charge:/);
  t.regex(String(before?.message_id), /^otp_/);
});

test.serial(
  'on the plan per message what is taken is charged, and refunded when it fails later',
  async (t) => {
    const customer = await stack.customer({ money: 10 });
    await setPlan(customer, 'per_message');
    const [good, bad] = [stack.phone(), stack.phone()];
    await customer.live.send(good.number);
    await eventually(t, async () =>
      (await billing(customer)).balance === 9.95 ? true : undefined,
    );
    t.is((await customer.live.verify(good.number, await good.code())).status, 200);
    t.is((await billing(customer)).balance, 9.95, 'its success costs nothing more');
    await bad.behave({ whatsapp: 'unreachable_async' });
    t.is((await customer.live.send(bad.number)).error.code, 'CHANNEL_NOT_LINKED');
    await eventually(t, async () => {
      const kinds = (await transactions(customer)).map(({ kind }) => kind);
      return kinds.filter((kind) => kind === 'refund').length === 1 ? true : undefined;
    });
    t.is((await billing(customer)).balance, 9.95);
  },
);

test.serial(
  'without a trial a deposit comes first; below the minimum nothing is sent',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    await setPlan(customer, 'pay_per_success');
    t.is((await success(customer)).error.code, 'DEPOSIT_REQUIRED');
    await fund(stack.api.poster, customer.accountId, 2);
    t.is((await success(customer)).status, 200);
    const short = await success(customer);
    t.is(short.status, 402);
    t.is(short.error.code, 'INSUFFICIENT_CREDITS');
  },
);

test.serial('an hour’s cap holds, says when it ends, and lets the next hour pass', async (t) => {
  const customer = await stack.customer({ money: 10 });
  await setPlan(customer, 'pay_per_success');
  const cap = (spend_cap_hourly: number | null) =>
    customer.live.call('PATCH', '/v1/clients/settings', { body: { spend_cap_hourly } });
  await cap(0.1);
  clock.forward(hour - (clock.now() % hour));
  t.is((await success(customer)).status, 200);
  t.is((await success(customer)).status, 200);
  const capped = await success(customer);
  t.is(capped.status, 429);
  t.like(capped.error, { code: 'SPEND_CAP_EXCEEDED', dimension: 'account', window_seconds: 3600 });
  const wait = Number(capped.headers.get('retry-after'));
  t.true(wait > 3_500 && wait <= 3_600);
  clock.forward(hour);
  t.is((await success(customer)).status, 200);
  await cap(0);
  t.is((await success(customer)).error.code, 'SPEND_CAP_EXCEEDED');
  await cap(null);
  t.is((await success(customer)).status, 200);
});

test.serial('prices: none, below cost, the account’s own', async (t) => {
  const customer = await stack.customer({ money: 100 });
  const { prices, revocations } = stack.api;
  const send = async () => (await customer.live.send('+447400123456')).error.code;
  await prices.setPrice('GB', { priceMicros: null, costMicros: 0 });
  await revocations.announce();
  t.is(await send(), 'INTL_PRICING_NOT_CONFIGURED');
  await prices.setPrice('GB', { priceMicros: 40_000, costMicros: 60_000 });
  await revocations.announce();
  t.is(await send(), 'INTL_PRICE_BELOW_COST');
  await prices.setOverride(customer.accountId, 'GB', 70_000);
  await revocations.announce();
  t.is(await send(), undefined);
  const { data } = await customer.live.get('/v1/clients/pricing');
  t.like(data, { currency: 'USD', default_price: 0.05, totp_price: 0.002 });
  t.deepEqual(data.items, [{ country: 'GB', price: 0.07, source: 'account' }]);
});

test.serial(
  'the shared number: countries, pauses, an hour’s sends, a trial’s allowance',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    const { prices, revocations } = stack.api;
    const send = async (to = aNumber()) => (await customer.live.send(to)).error.code;
    t.is(await send('+33612345678'), 'CENTRAL_WHATSAPP_UNSUPPORTED_REGION');
    for (const pause of [
      (on: boolean) => prices.setPaused('shared_number', on, clock.now()),
      (on: boolean) => prices.setSharedPaused(customer.accountId, on),
    ]) {
      await pause(true);
      await revocations.announce();
      t.is(await send(), 'CENTRAL_WHATSAPP_PAUSED');
      await pause(false);
      await revocations.announce();
    }
    await prices.setPaused('trial', true, clock.now());
    await revocations.announce();
    t.is(await send(), 'FREE_TRIAL_PAUSED');
    await prices.setPaused('trial', false, clock.now());
    await revocations.announce();
    const codes: unknown[] = [];
    for (let time = 0; time < 11; time++) {
      codes.push(await send());
      clock.forward(6 * 60_000);
    }
    t.deepEqual(codes, [...Array(10).fill(undefined), 'CENTRAL_WHATSAPP_CONNECT_REQUIRED']);
    await fund(stack.api.poster, customer.accountId, 10);
    t.is(await send(), undefined, 'a deposit lifts the allowance of the trial');
  },
);

test.serial(
  'what is refused takes neither credit nor limits, and what is not sent gives its hold back',
  async (t) => {
    const customer = await stack.customer({ money: 2.05 });
    await setPlan(customer, 'pay_per_success');
    const unreachable = stack.phone();
    await unreachable.behave({ whatsapp: 'unreachable_sync' });
    for (let time = 0; time < 45; time++) {
      const answer = await customer.live.send(stack.phone().number);
      t.is(answer.status, 200, answer.text);
      if (time === 3) t.is((await customer.live.send(unreachable.number)).status, 409);
      if (time === 40) break;
    }
    t.is(
      (await customer.live.send(stack.phone().number)).error.code,
      'INSUFFICIENT_CREDITS',
      '41 holds of 0.05',
    );
    clock.forward(6 * 60_000);
    t.is(
      (await customer.live.send(stack.phone().number)).status,
      200,
      'codes that ended hold nothing',
    );
  },
);

test.serial(
  'of many sends at once only what the balance holds goes out, and it never falls below zero',
  async (t) => {
    const customer = await stack.customer({ money: 2 });
    await setPlan(customer, 'pay_per_success');
    await stack.api.prices.setOverride(customer.accountId, 'US', 100_000);
    await stack.api.revocations.announce();
    const phones = Array.from({ length: 60 }, () => stack.phone());
    const sent = await Promise.all(phones.map(({ number }) => customer.live.send(number)));
    const codes = new Set(sent.map(({ error }) => error.code ?? 'sent'));
    t.deepEqual([...codes].toSorted(), ['INSUFFICIENT_CREDITS', 'sent']);
    const out = phones.filter((_, index) => sent[index]?.status === 200);
    t.is(out.length, 20);
    const verified = await Promise.all(
      out.map(async (phone) => customer.live.verify(phone.number, await phone.code())),
    );
    t.true(verified.every(({ status }) => status === 200));
    t.is((await billing(customer)).balance, 0);
  },
);

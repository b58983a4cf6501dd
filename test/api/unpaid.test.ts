// What may be sent without being paid for: the trial, the shared number's allowance, and what unverified messages cost.
import test from 'ava';
import { platformAccountId, playgroundAccountId } from '../../lib/accounts/platform.ts';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { day, hour, minute } from '../../lib/kernel/clock.ts';
import { fromMessageId, idBytes, newId } from '../../lib/kernel/ids.ts';
import { appCode } from '../support/authenticator.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { fund } from '../support/money.ts';
import { aNumber, type TestPhone } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  stack = await startStack('unpaid', {
    clock,
    settings: {
      TRIAL_VERIFICATIONS: '2',
      PRICE_USD: '1',
      SHARED_NUMBER_UNVERIFIED: '3',
      SHARED_NUMBER_PER_VERIFIED: '2',
      UNPAID_EXPOSURE_TRIAL_USD: '7',
      UNPAID_EXPOSURE_USD: '6',
      WHATSAPP_TIMEOUT_MS: '1000',
      WHATSAPP_ECHO_WAIT_MS: '500',
    },
  });
});
test.after.always(() => stack?.close());

type Limits = {
  allowances: {
    free_trial: Record<string, unknown>;
    shared_number: Record<string, unknown>;
    unpaid_exposure: Record<string, unknown>;
    balance: { held: number };
  };
  eligibility: { can_send: boolean; blocked_by: string[] };
};

const limitsOf = async ({ live }: Customer) =>
  (await live.get('/v1/clients/limits')).data as unknown as Limits;

const billingOf = async ({ live }: Customer) => (await live.get('/v1/clients/billing')).data;

const differences = async () => (await reconcile(stack.api, clock.now() + hour)).differences;

const sent = async ({ live }: Customer): Promise<TestPhone> => {
  const phone = stack.phone();
  const answer = await live.send(phone.number);
  if (answer.status !== 200) throw new Error(answer.text);
  return phone;
};

const verify = async ({ live }: Customer, phone: TestPhone) =>
  (await live.verify(phone.number, await phone.code())).status;

const errorOf = async ({ live }: Customer) => (await live.send(aNumber())).error;

const chargesOf = async ({ accountId }: Customer) =>
  (await stack.api.ledger.list(accountId, { before: undefined, limit: 100 }))
    .filter(({ kind }) => kind === 'charge' || kind === 'totp')
    .map(({ amountMicros }) => amountMicros / 1_000_000)
    .toReversed();

// First, while the clock of the test is that of the ids, by which the hourly figures are counted.
test.serial('a cost that Redis has lost is read from the hourly figures', async (t) => {
  const customer = await stack.customer({ money: 100 });
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  await stack.api.revocations.announce();
  t.is(await verify(customer, await sent(customer)), 200);
  for (let n = 0; n < 6; n++) await sent(customer);
  const counted = async () => {
    const hours = await stack.api.ledger.countExposed(customer.accountId, 0);
    return hours.reduce((sum, { unverified }) => sum + unverified, 0);
  };
  await eventually(t, async () => ((await counted()) === 6 ? true : undefined));
  await stack.api.redis.del(`${stack.config.keyPrefix}exposed:{${customer.accountId}}`);
  t.is((await errorOf(customer)).code, 'RATE_LIMIT_EXCEEDED');
  t.like((await limitsOf(customer)).allowances.unpaid_exposure, { used: 6, limit: 6 });
});

test.serial(
  'while a free verification is left a success is free, whichever code it is of; the next one is paid for',
  async (t) => {
    const customer = await stack.customer({ money: 10 });
    const phones = [await sent(customer), await sent(customer), await sent(customer)];
    t.like(await limitsOf(customer), {
      allowances: {
        free_trial: { granted: 2, used: 0, held: 2, remaining: 2 },
        balance: { held: 1 },
      },
    });
    // The one that credit was asked for comes first.
    for (const phone of phones.toReversed()) t.is(await verify(customer, phone), 200);
    t.deepEqual(await chargesOf(customer), [0, 0, -1]);
    t.like(await billingOf(customer), { trial_remaining: 0, balance: 9 });
    await eventually(t, async () =>
      (await billingOf(customer)).plan === 'pay_per_success' ? true : undefined,
    );
    t.deepEqual(await differences(), []);
  },
);

test.serial('codes that nobody enters use no free verification, and cost nothing', async (t) => {
  const customer = await stack.customer({ money: 10 });
  for (let n = 0; n < 4; n++) await sent(customer);
  clock.forward(6 * minute);
  t.like(await limitsOf(customer), {
    allowances: { free_trial: { used: 0, held: 0, remaining: 2 }, balance: { held: 0 } },
  });
  t.is(await verify(customer, await sent(customer)), 200);
  t.deepEqual(await chargesOf(customer), [0]);
});

test.serial('the dearest codes are held for: no order of successes overdraws', async (t) => {
  const customer = await stack.customer({ money: 5 });
  await stack.api.prices.setOverride(customer.accountId, 'GB', 3_000_000);
  await stack.api.revocations.announce();
  const dear = ['+447400111222', '+447400111333'];
  for (const number of dear) t.is((await customer.live.send(number)).status, 200);
  t.is((await limitsOf(customer)).allowances.balance.held, 0, 'both may be free');
  await sent(customer);
  t.is((await limitsOf(customer)).allowances.balance.held, 3, 'the cheap one may be free first');
  t.is((await limitsOf(customer)).allowances.free_trial.held, 2);
  const third = await customer.live.send('+447400111444');
  t.is(third.error.code, 'INSUFFICIENT_CREDITS', '6 of 5 USD, should the others be free');
});

test.serial(
  'a code of an authenticator app takes a free verification, and then its price',
  async (t) => {
    const customer = await stack.customer({ money: 10 });
    const phone = aNumber();
    const { data } = await customer.live.post('/v1/totp/enroll', { phone });
    for (let n = 0; n < 3; n++) {
      clock.forward(30_000);
      const code = appCode(String(data.secret), clock.now());
      t.is((await customer.live.post('/v1/totp/verify', { phone, code })).status, 200);
    }
    await eventually(t, async () => ((await chargesOf(customer)).length === 3 ? true : undefined));
    t.deepEqual(await chargesOf(customer), [0, 0, -0.002]);
    t.deepEqual(await differences(), []);
  },
);

test.serial('a message says on which plan it was charged', async (t) => {
  const customer = await stack.customer({ money: 10 });
  const phones = [await sent(customer), await sent(customer), await sent(customer)];
  for (const phone of phones) t.is(await verify(customer, phone), 200);
  const rows = await stack.api
    .db('messages')
    .where({ account_id: idBytes(customer.accountId) })
    .orderBy('id')
    .select('plan', 'price_micros');
  t.deepEqual(
    rows.map(({ plan, price_micros: price }) => [plan, Number(price)]),
    [
      ['trial', 1_000_000],
      ['trial', 1_000_000],
      ['pay_per_success', 1_000_000],
    ],
  );
});

test.serial(
  'on the trial a message that fails after its 200 holds nothing from then on',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    const phones = [stack.phone(), stack.phone()];
    for (const phone of phones) {
      await stack.api.live.learnReachable(stack.api.recipients.ofPhone(phone.number), true);
      await phone.behave({ whatsapp: 'unreachable_async' });
      t.is((await customer.live.send(phone.number)).status, 200);
    }
    await eventually(t, async () => {
      const { free_trial: trial, shared_number: shared } = (await limitsOf(customer)).allowances;
      return trial.held === 0 && shared.used === 0 ? true : undefined;
    });
    t.is(await errorOf(customer).then(({ code }) => code), undefined);
  },
);

test.serial('a paid account’s hold ends with a message that failed for good', async (t) => {
  const customer = await stack.customer({ money: 10 });
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  await stack.api.revocations.announce();
  const phone = stack.phone();
  await stack.api.live.learnReachable(stack.api.recipients.ofPhone(phone.number), true);
  await phone.behave({ whatsapp: 'unreachable_async' });
  t.is((await customer.live.send(phone.number)).status, 200);
  await eventually(t, async () =>
    (await limitsOf(customer)).allowances.balance.held === 0 ? true : undefined,
  );
  t.is((await limitsOf(customer)).allowances.unpaid_exposure.used, 0, 'it cost nothing');
});

test.serial(
  'where the code may still be used the answer says so, and its price is held',
  async (t) => {
    const customer = await stack.customer({ money: 10 });
    await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
    await stack.api.revocations.announce();
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'timeout' });
    const { error } = await customer.live.send(phone.number);
    t.is(error.code, 'DELIVERY_FAILED');
    t.regex(String(error.message), /may still arrive, and then it can be used/);
    t.is((await limitsOf(customer)).allowances.balance.held, 1);
  },
);

test.serial(
  'the shared number’s allowance is earned: a few unverified messages, and more for each verified one',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    const { live } = customer;
    const shared = async () => (await limitsOf(customer)).allowances.shared_number;
    t.like(await shared(), { allowance: 3, used: 0, unverified_at_first: 3, per_verified: 2 });
    // A trial of two lets two be open at a time.
    await sent(customer);
    clock.forward(6 * minute);
    await sent(customer);
    const third = await sent(customer);
    t.is((await errorOf(customer)).code, 'FREE_TRIAL_EXHAUSTED');
    clock.forward(2 * minute);
    t.is(await verify(customer, third), 200);
    t.like(await shared(), { allowance: 5, used: 2 });
    clock.forward(6 * minute);
    for (let n = 0; n < 3; n++) {
      await sent(customer);
      clock.forward(6 * minute);
    }
    t.like(await shared(), { allowance: 5, used: 5 });
    t.deepEqual((await limitsOf(customer)).eligibility.blocked_by, [
      'CENTRAL_WHATSAPP_CONNECT_REQUIRED',
    ]);
    t.is((await errorOf(customer)).code, 'CENTRAL_WHATSAPP_CONNECT_REQUIRED');
    t.is((await live.send(aNumber())).status, 403);
    // What Redis forgets is counted from the messages.
    await stack.api.redis.del(`${stack.config.keyPrefix}shared:{${customer.accountId}}`);
    t.like(await shared(), { allowance: 5, used: 5 });
    t.is((await errorOf(customer)).code, 'CENTRAL_WHATSAPP_CONNECT_REQUIRED');
    t.is((await customer.test.send(aNumber())).status, 200, 'the sandbox uses none of it');
    await fund(stack.api.poster, customer.accountId, 10);
    t.is((await errorOf(customer)).code, undefined, 'a deposit ends it');
  },
);

test.serial('the grant is the account’s own: another setting leaves it as it was', async (t) => {
  const customer = await stack.customer({ money: 0 });
  await stack.api
    .db('accounts')
    .where({ id: idBytes(customer.accountId) })
    .update({ shared_unverified: 7, trial_granted: 50 });
  const { allowances } = await limitsOf(customer);
  t.like(allowances, {
    shared_number: { allowance: 7 },
    free_trial: { granted: 50, remaining: 50 },
  });
});

test.serial(
  'what unverified messages cost is capped before a deposit and after it; verified codes make room',
  async (t) => {
    const customer = await stack.customer({ money: 100 });
    await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
    await stack.api.revocations.announce();
    const exposure = async () => (await limitsOf(customer)).allowances.unpaid_exposure;
    const first = await sent(customer);
    for (let n = 0; n < 5; n++) await sent(customer);
    t.like(await exposure(), { used: 6, limit: 6, remaining: 0, window_seconds: 86_400 });
    t.deepEqual((await limitsOf(customer)).eligibility.blocked_by, ['RATE_LIMIT_EXCEEDED']);
    const refused = await customer.live.send(aNumber());
    t.is(refused.status, 429);
    t.like(refused.error, {
      code: 'RATE_LIMIT_EXCEEDED',
      reason: 'fraud_protection',
      dimension: 'account',
      window_seconds: 86_400,
    });
    t.regex(String(refused.error.message), /6 USD/);
    t.is(await verify(customer, first), 200);
    t.like(await exposure(), { used: 5, limit: 6 });
    t.is((await errorOf(customer)).code, undefined);
    t.is((await errorOf(customer)).code, 'RATE_LIMIT_EXCEEDED');
    clock.forward(6 * minute);
    t.like(await exposure(), { used: 6 }, 'what has expired unverified was sent all the same');
    clock.forward(day + hour);
    t.like(await exposure(), { used: 0, reset_at: null });
    t.is((await errorOf(customer)).code, undefined);
  },
);

test.serial(
  'before a deposit the cap is another one, and free verifications do not lift it',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    await stack.api
      .db('accounts')
      .where({ id: idBytes(customer.accountId) })
      .update({ shared_unverified: 100, trial_granted: 50 });
    for (let n = 0; n < 7; n++) await sent(customer);
    t.like(await errorOf(customer), { code: 'RATE_LIMIT_EXCEEDED', reason: 'fraud_protection' });
    t.like((await limitsOf(customer)).allowances.unpaid_exposure, { used: 7, limit: 7 });
  },
);

test.serial('three times what was charged may be unverified where that is more', async (t) => {
  const customer = await stack.customer({ money: 100 });
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  await stack.api.revocations.announce();
  for (let n = 0; n < 3; n++) t.is(await verify(customer, await sent(customer)), 200);
  await stack.api.poster.drain();
  const exposure = async () => (await limitsOf(customer)).allowances.unpaid_exposure;
  t.like(await exposure(), { used: 0, limit: 9 });
  for (let n = 0; n < 9; n++) await sent(customer);
  t.is((await errorOf(customer)).code, 'RATE_LIMIT_EXCEEDED');
});

test.serial(
  'a message that was admitted says its price, whoever pays for it in the end',
  async (t) => {
    const customer = await stack.customer({ money: 0 });
    const answer = await customer.live.send(stack.phone().number);
    const id = fromMessageId(String(answer.data.message_id));
    const found = id && (await stack.api.messages.find(customer.accountId, id));
    t.like(found, { message: { plan: 'trial', priceMicros: 1_000_000 } });
  },
);

test.serial('the service’s own accounts have no cap: owners always get their codes', async (t) => {
  for (const id of [platformAccountId, playgroundAccountId]) {
    const account = await stack.api.accounts.find(id);
    if (!account) throw new Error('the migrations make it');
    const sends = Array.from({ length: 20 }, () => {
      const holdId = newId();
      return stack.api.quotes.send({ account, mode: 'live', country: 'US', holdId, shared: true });
    });
    t.deepEqual(
      new Set((await Promise.all(sends)).map(({ priceMicros }) => priceMicros)),
      new Set([0]),
    );
    const keys = await stack.api.redis.keys(`${stack.config.keyPrefix}*:{${id}}`);
    t.deepEqual(
      keys.filter((key) => /exposed|hold-/.test(key)),
      [],
      'nothing is held or counted',
    );
  }
});

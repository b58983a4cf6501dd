// Nobody spends money twice: what open codes, apps and messages will cost is held, also while billing is away for long.
import test from 'ava';
import sinon from 'sinon';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { hour, minute } from '../../lib/kernel/clock.ts';
import { appCode } from '../support/authenticator.ts';
import { createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { aNumber, type TestPhone } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  // Hundreds of sends at once on a machine that is busy with other tests: nobody gives up early.
  const settings = {
    ...{ TRIAL_VERIFICATIONS: '2', PRICE_USD: '1', SETTLE_DEADLINE_MS: '20000' },
    ...{ SEND_DEADLINE_MS: '30000', WHATSAPP_TIMEOUT_MS: '20000' },
    // Five hundred open codes in one block of numbers are what the guard holds; this test asks what the balance does.
    FRAUD_GUARD: 'shadow',
  };
  stack = await startStack('overdraft', { clock, settings });
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

const priced = async ({ accountId }: Customer, micros: number): Promise<void> => {
  await stack.api.prices.setOverride(accountId, 'US', micros);
  await stack.api.revocations.announce();
};

const balanceOf = async ({ session }: Customer) =>
  (await session.get('/v1/clients/billing')).data.balance;

const verify = async ({ live }: Customer, phone: TestPhone) =>
  live.verify(phone.number, await phone.code());

const codeOf = async ({ live }: Customer) => (await live.send(aNumber())).error.code;

/** Billing is away for longer than any code lives, while `happens`; then it catches up. */
const whileBillingIsAway = async (
  happens: () => Promise<unknown>,
  later: () => Promise<unknown>,
) => {
  const impatient = sinon.stub(stack.api.verifies, 'settleDeadlineMs').value(50);
  await stack.stopWorkers('billing');
  await happens();
  clock.forward(6 * minute);
  await later();
  impatient.restore();
  await stack.startWorkers('billing');
};

const untilBalance = (t: Parameters<typeof eventually>[0], customer: Customer, micros: number) =>
  eventually(t, async () => ((await balanceOf(customer)) === micros ? true : undefined));

test.serial('what was verified is held until billing is back and charges it', async (t) => {
  const customer = await on('pay_per_success', 2);
  const phones = [stack.phone(), stack.phone()];
  await whileBillingIsAway(
    async () => {
      for (const phone of phones) {
        t.is((await customer.live.send(phone.number)).status, 200);
        t.is((await verify(customer, phone)).error.code, 'BILLING_ERROR');
      }
    },
    async () => t.is(await codeOf(customer), 'INSUFFICIENT_CREDITS'),
  );
  await untilBalance(t, customer, 0);
  await stack.api.poster.drain();
});

test.serial('free verifications are not given away twice while billing is away', async (t) => {
  const customer = await on('trial', 0);
  const phones = [stack.phone(), stack.phone()];
  await whileBillingIsAway(
    async () => {
      for (const phone of phones) {
        t.is((await customer.live.send(phone.number)).status, 200);
        t.is((await verify(customer, phone)).error.code, 'BILLING_ERROR');
      }
    },
    async () => t.is(await codeOf(customer), 'FREE_TRIAL_EXHAUSTED'),
  );
});

test.serial(
  'a message that is paid for when it is taken is held until it is charged',
  async (t) => {
    const customer = await on('per_message', 2);
    await whileBillingIsAway(
      async () => {
        for (let n = 0; n < 2; n++) t.is(await codeOf(customer), undefined);
      },
      async () => t.is(await codeOf(customer), 'INSUFFICIENT_CREDITS'),
    );
    await untilBalance(t, customer, 0);
  },
);

test.serial('a TOTP verification is held until it is charged', async (t) => {
  const customer = await on('pay_per_success', 2);
  const phone = aNumber();
  const { data } = await customer.live.post('/v1/totp/enroll', { phone });
  await priced(customer, 2_000_000);
  await whileBillingIsAway(
    async () => {
      const code = appCode(String(data.secret), clock.now());
      t.true((await customer.live.post('/v1/totp/verify', { phone, code })).data.verified);
    },
    async () => t.is(await codeOf(customer), 'INSUFFICIENT_CREDITS'),
  );
  await untilBalance(t, customer, 1.998);
});

test.serial('once it is charged nothing is held any more', async (t) => {
  const customer = await on('pay_per_success', 3);
  const phone = stack.phone();
  await whileBillingIsAway(
    async () => {
      await customer.live.send(phone.number);
      t.is((await verify(customer, phone)).error.code, 'BILLING_ERROR');
    },
    async () => undefined,
  );
  await untilBalance(t, customer, 2);
  await eventually(t, async () => ((await codeOf(customer)) === undefined ? true : undefined));
  t.is(await codeOf(customer), undefined, 'two dollars hold two codes');
  t.is(await codeOf(customer), 'INSUFFICIENT_CREDITS');
});

test.serial(
  'what no channel took is given back by billing, too, should the API not have',
  async (t) => {
    const customer = await on('per_message', 2);
    const lost = sinon.stub(stack.api.credit, 'release').rejects(new Error('killed'));
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'unreachable_sync' });
    t.is((await customer.live.send(phone.number)).error.code, 'CHANNEL_NOT_LINKED');
    t.true(lost.called);
    lost.restore();
    await eventually(t, async () => {
      const { data } = await customer.live.get('/v1/clients/limits');
      return (data.allowances as { balance: { held: number } }).balance.held === 0
        ? true
        : undefined;
    });
  },
);

test.serial(
  'of five hundred sends at once only what the balance holds goes out, and all of it may succeed',
  async (t) => {
    const customer = await on('pay_per_success', 2);
    await stack.api.accounts.setTier(customer.accountId, {
      ...{ name: 'custom', perMinute: 5_000, expiresAt: null },
    });
    await priced(customer, 20_000);
    const phones = Array.from({ length: 500 }, () => stack.phone());
    const keys = await Promise.all(
      [0, 1].map(async (n) => {
        const key = { name: `k${n}`, mode: 'live' };
        return String((await customer.session.post('/v1/clients/keys', key)).data.key);
      }),
    );
    const clients = [customer.live, ...keys.map((key) => createClient(stack.url, key))];
    const sent = await Promise.all(
      phones.map(({ number }, n) => (clients[n % 3] ?? customer.live).send(number)),
    );
    const codes = new Set(sent.map(({ error }) => error.code));
    t.deepEqual(codes, new Set([undefined, 'INSUFFICIENT_CREDITS']));
    const out = phones.filter((_, index) => sent[index]?.status === 200);
    t.is(out.length, 100, 'two dollars hold a hundred codes at two cents');
    const verified = await Promise.all(out.map((phone) => verify(customer, phone)));
    t.true(verified.every(({ status }) => status === 200));
    t.is(await balanceOf(customer), 0);
    const { differences } = await reconcile(stack.api, clock.now() + hour);
    t.deepEqual(differences, []);
  },
);

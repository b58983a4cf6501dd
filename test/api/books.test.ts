// Money over HTTP: TOTP and the sandbox, the list of transactions, an answer that does not come, and the books.
import test from 'ava';
import sinon from 'sinon';
import { adjust } from '../../lib/billing/credit.ts';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { hour } from '../../lib/kernel/clock.ts';
import { idAt, idBytes, newId } from '../../lib/kernel/ids.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { fund } from '../support/money.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const usd = 1_000_000;

test.before(async () => {
  const settings = {
    TRIAL_VERIFICATIONS: '2',
    SHARED_NUMBER_COUNTRIES: 'US,GB',
    PRICE_USD: '0.05',
  };
  stack = await startStack('books', { clock, settings });
});
test.after.always(() => stack?.close());

const billing = async ({ session, live }: Customer) => {
  const answer = await live.get('/v1/clients/billing');
  return (answer.status === 200 ? answer : await session.get('/v1/clients/billing')).data;
};

const transactions = async ({ live }: Customer) =>
  (await live.get('/v1/clients/transactions')).data.items as Record<string, unknown>[];

const setPlan = async ({ accountId }: Customer, plan: string) => {
  await stack.api.ledger.setPlan(accountId, 'trial', plan);
  await stack.api.revocations.announce();
};

const books = async () => (await reconcile(stack.api, clock.now() + hour)).differences;

test.serial('a TOTP verification costs 0.002 USD on success', async (t) => {
  const { appCode } = await import('../support/authenticator.ts');
  const customer = await stack.customer({ money: 10 });
  await setPlan(customer, 'pay_per_success');
  const phone = aNumber();
  const { data } = await customer.live.post('/v1/totp/enroll', { phone });
  const verify = (code: string) => customer.live.post('/v1/totp/verify', { phone, code });
  await verify('000000');
  const code = appCode(String(data.secret), clock.now());
  t.true((await verify(code)).data.verified);
  t.false((await verify(code)).data.verified);
  await eventually(t, async () => ((await billing(customer)).balance === 9.998 ? true : undefined));
  t.like((await transactions(customer))[0], { kind: 'totp', amount: -0.002 });
});

test.serial('the sandbox costs nothing and asks for nothing', async (t) => {
  const customer = await stack.customer({ money: 0 });
  await setPlan(customer, 'pay_per_success');
  const phone = aNumber();
  t.is((await customer.test.send(phone)).status, 200);
  t.is((await customer.test.verify(phone, '123456')).status, 200);
  t.deepEqual(await transactions(customer), []);
});

test.serial('transactions are paged, exported, and each tenant’s own', async (t) => {
  const customer = await stack.customer({ money: 1 });
  for (let n = 0; n < 5; n++) await fund(stack.api.poster, customer.accountId, n + 1);
  const all = await transactions(customer);
  t.deepEqual(
    all.map(({ amount }) => amount),
    [5, 4, 3, 2, 1, 1],
  );
  const walked: unknown[] = [];
  let before = '';
  for (;;) {
    const { data } = await customer.live.get(`/v1/clients/transactions?limit=4${before}`);
    walked.push(...(data.items as unknown[]));
    if (data.next_before === null) break;
    before = `&before=${data.next_before}`;
  }
  t.deepEqual(walked, all);
  for (const wrong of ['limit=0', 'limit=101', 'before=x', 'kind=charge']) {
    const answer = await customer.live.get(`/v1/clients/transactions?${wrong}`);
    t.is(answer.error.code, 'VALIDATION_ERROR', wrong);
  }
  const file = await customer.live.get('/v1/clients/transactions/export');
  t.regex(file.headers.get('content-type') ?? '', /^text\/csv/);
  const lines = file.text.trim().split('\r\n');
  t.is(lines[0], 'id,created_at,kind,amount,balance_after,reference,message_id');
  t.is(lines.length, 7);
});

test.serial('transactions follow the ledger, whatever the clocks of its workers say', async (t) => {
  const customer = await stack.customer({ money: 1 });
  for (let n = 0; n < 3; n++) await fund(stack.api.poster, customer.accountId, 1);
  // The third was written by a worker whose clock is an hour behind.
  await stack.api
    .db('ledger')
    .where({ account_id: idBytes(customer.accountId), seq: 3 })
    .update({ id: idBytes(idAt(Date.now() - hour)) });
  const seen: unknown[] = [];
  let before = '';
  do {
    const { data } = await customer.live.get(`/v1/clients/transactions?limit=1${before}`);
    seen.push(...(data.items as Record<string, unknown>[]).map((row) => row.balance_after));
    before = data.next_before === null ? '' : `&before=${data.next_before}`;
  } while (before !== '');
  t.deepEqual(seen, [4, 3, 2, 1]);
});

test.serial(
  'a late or absent answer of billing is BILLING_ERROR; the verification stands and is charged',
  async (t) => {
    const customer = await stack.customer({ money: 10 });
    await setPlan(customer, 'pay_per_success');
    const phone = stack.phone();
    await customer.live.send(phone.number);
    const code = await phone.code();
    await stack.stopWorkers('billing');
    const answer = await customer.live.verify(phone.number, code);
    t.is(answer.status, 500);
    t.is(answer.error.code, 'BILLING_ERROR');
    t.is((await customer.live.verify(phone.number, code)).error.code, 'OTP_NOT_FOUND');
    await stack.startWorkers('billing');
    await eventually(t, async () =>
      (await billing(customer)).balance === 9.95 ? true : undefined,
    );
  },
);

test.serial('a verification that the broker did not take is kept, told and charged', async (t) => {
  const { tellLeftNews } = await import('../../lib/messages/news.ts');
  const { BrokerUnavailable, QueueFull } = await import('../../lib/infra/queue/errors.ts');
  const customer = await stack.customer({ money: 10 });
  await setPlan(customer, 'pay_per_success');
  const silence = new Promise<void>(() => undefined);
  const refusals = [
    () => Promise.reject(new BrokerUnavailable('gone')),
    () => Promise.reject(new QueueFull('of billing')),
    () => silence,
  ];
  for (const [index, refuse] of refusals.entries()) {
    const phone = stack.phone();
    await customer.live.send(phone.number);
    const away = sinon.stub(stack.api.announcer, 'announce').callsFake(refuse);
    const answer = await customer.live.verify(phone.number, await phone.code());
    away.restore();
    t.is(answer.error.code, 'BILLING_ERROR');
    t.is((await billing(customer)).balance, 10 - index * 0.05);
    clock.forward(20_000);
    t.is(await tellLeftNews(stack.worker), 1);
    await eventually(t, async () =>
      (await billing(customer)).balance === 10 - (index + 1) * 0.05 ? true : undefined,
    );
    const { items } = (await customer.live.get('/v1/clients/otps?limit=1')).data;
    t.like(items, [{ status: 'verified' }]);
  }
  t.is(await tellLeftNews(stack.worker), 0);
  t.deepEqual(await books(), []);
});

test.serial(
  'a verification that billing took and another queue did not is told there later',
  async (t) => {
    const { tellLeftNews } = await import('../../lib/messages/news.ts');
    const { QueueFull } = await import('../../lib/infra/queue/errors.ts');
    const customer = await stack.customer({ money: 10 });
    await setPlan(customer, 'pay_per_success');
    const phone = stack.phone();
    await customer.live.send(phone.number);
    const announce = stack.api.announcer.announce.bind(stack.api.announcer);
    const full = sinon.stub(stack.api.announcer, 'announce').callsFake(async (...event) => {
      await announce(...event);
      throw new QueueFull('of another job');
    });
    const answer = await customer.live.verify(phone.number, await phone.code());
    full.restore();
    t.is(answer.status, 200, answer.text);
    t.is((await billing(customer)).balance, 9.95);
    clock.forward(20_000);
    t.is(await tellLeftNews(stack.worker), 1);
    t.is((await billing(customer)).balance, 9.95);
    t.deepEqual(await books(), []);
  },
);

test.serial('a TOTP verification whose event was lost is charged from its log, once', async (t) => {
  const { appCode } = await import('../support/authenticator.ts');
  const { chargeForgotten } = await import('../../lib/billing/chores.ts');
  const customer = await stack.customer({ money: 10 });
  await setPlan(customer, 'pay_per_success');
  const phone = aNumber();
  const { data } = await customer.live.post('/v1/totp/enroll', { phone });
  const lost = sinon.stub(stack.api.announcer, 'announce').resolves();
  await customer.live.post('/v1/totp/verify', {
    phone,
    code: appCode(String(data.secret), clock.now()),
  });
  lost.restore();
  t.is(await chargeForgotten(stack.worker), 0, 'it may still be on its way');
  clock.forward(hour);
  t.like((await books())[0], { check: 'every TOTP verification is charged, at its price' });
  t.is(await chargeForgotten(stack.worker), 1);
  t.is(await chargeForgotten(stack.worker), 0);
  t.is((await billing(customer)).balance, 9.998);
  t.deepEqual(await books(), []);
});

test.serial('the books are proven, and a difference is found', async (t) => {
  t.deepEqual(await books(), []);
  const customer = await stack.customer({ money: 10 });
  const about = {
    accountId: customer.accountId,
    amountMicros: -1 * usd,
    name: newId(),
    note: 'test',
  };
  await adjust({ poster: stack.api.poster, clock }, about);
  t.deepEqual(await books(), []);
  const { db } = stack.api;
  await db('ledger')
    .where({ reference: `adjust:${about.name}` })
    .update({ amount_micros: -2 * usd });
  const found = await books();
  t.deepEqual(new Set(found.map(({ accountId }) => accountId)), new Set([customer.accountId]));
  t.deepEqual(
    found.map(({ check }) => check),
    ['the balance is the sum of the ledger', 'each row continues the balance before it'],
  );
});

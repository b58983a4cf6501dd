// Payments that Stripe takes back: in whatever order and however often it is told, the credit goes once.
import { createHmac } from 'node:crypto';
import test from 'ava';
import { claimPayment } from '../../lib/billing/deposits.ts';
import { reconcile } from '../../lib/billing/reconcile.ts';
import { hour } from '../../lib/kernel/clock.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { shared } from '../support/settings.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('reversals', { workers: [] });
});
test.after.always(() => stack?.close());

const accountName = /^[0-9a-f-]{36}$/;

type News = { type: string; data: { object: Record<string, unknown> } };

const tell = async ({ type, data }: News): Promise<number> => {
  const { client_reference_id: accountId, metadata } = data.object;
  if (typeof accountId === 'string' && accountName.test(accountId)) {
    const { tessera_checkout: id } = metadata as { tessera_checkout: string };
    // The service opened it before.
    const opened = { id, accountId, amountMicros: 20_000_000, at: Date.now() };
    await stack.api.checkouts.open(opened).catch(() => undefined);
  }
  const body = JSON.stringify({ id: `evt_${newId()}`, object: 'event', type, data });
  const at = Math.floor(Date.now() / 1000);
  const mac = createHmac('sha256', shared.stripe.webhookSecret).update(`${at}.${body}`);
  const answer = await fetch(`${stack.url}/v1/inbound/payments`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'stripe-signature': `t=${at},v1=${mac.digest('hex')}`,
    },
    body,
  });
  return answer.status;
};

const newsOf = (type: string, object: Record<string, unknown>): News => ({
  type,
  data: { object },
});

/** What Stripe tells of one payment of 20 USD and of its ends. */
const course = (account: string | null, long = '') => {
  const checkout = newId();
  const name = checkout + long;
  const intent = { payment_intent: `pi_${name}`, currency: 'usd' };
  const refund = { id: `re_${name}`, object: 'refund', amount: 500, ...intent };
  const dispute = { id: `dp_${name}`, object: 'dispute', amount: 2_000, ...intent };
  const session = {
    ...{ id: `cs_test_${name}`, object: 'checkout.session', payment_status: 'paid' },
    ...{ client_reference_id: account, amount_total: 2_000, ...intent },
    metadata: { tessera_checkout: checkout },
  };
  return {
    name: session.id,
    paid: newsOf('checkout.session.completed', session),
    inEuro: newsOf('checkout.session.completed', { ...session, currency: 'eur' }),
    pending: newsOf('refund.created', { ...refund, status: 'pending' }),
    refunded: newsOf('refund.updated', { ...refund, status: 'succeeded' }),
    oldRefunded: newsOf('charge.refund.updated', { ...refund, status: 'succeeded' }),
    failed: newsOf('refund.failed', { ...refund, status: 'failed' }),
    disputed: newsOf('charge.dispute.funds_withdrawn', dispute),
    won: newsOf('charge.dispute.funds_reinstated', dispute),
  };
};

const balanceOf = async ({ accountId }: Customer) =>
  ((await stack.api.ledger.balance(accountId))?.micros ?? 0) / 1_000_000;

const books = async ({ accountId }: Customer) =>
  (await reconcile(stack.api, Date.now() + hour)).differences.filter(
    (one) => one.accountId === accountId,
  );

test('a refund and a dispute take the credit, a dispute that was won brings it back', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const { paid, pending, oldRefunded, refunded, disputed, won } = course(customer.accountId);
  const steps: [News, number][] = [
    [paid, 20],
    [pending, 20],
    [oldRefunded, 15],
    [refunded, 15],
    [disputed, -5],
    [won, 15],
  ];
  for (const [news, expected] of steps) {
    for (let time = 0; time < 3; time++) t.is(await tell(news), 200);
    t.is(await balanceOf(customer), expected, news.type);
  }
  const { items } = (await customer.live.get('/v1/clients/transactions')).data as {
    items: Record<string, unknown>[];
  };
  t.deepEqual(
    items.map(({ kind, amount }) => [kind, amount]),
    [
      ['adjust', 20],
      ['adjust', -20],
      ['adjust', -5],
      ['deposit', 20],
    ],
  );
  t.deepEqual(await books(customer), []);
});

test('whichever comes first, and all at once: the same', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const early = course(customer.accountId);
  t.is(await tell(early.refunded), 200);
  t.is(await balanceOf(customer), 0);
  t.is(await tell(early.paid), 200);
  t.is(await balanceOf(customer), 15);
  const crowd = course(customer.accountId);
  const all = [crowd.paid, crowd.refunded, crowd.disputed, crowd.won];
  const told = await Promise.all([...all, ...all, ...all].map(tell));
  t.true(told.every((status) => status === 200));
  t.is(await balanceOf(customer), 30);
  t.deepEqual(await books(customer), []);
});

test('a payment for nobody we know is booked without what was taken back, once it is claimed', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const { name, paid, refunded } = course(null);
  for (const news of [paid, refunded]) t.is(await tell(news), 200);
  await claimPayment(stack.api, { name, accountId: customer.accountId });
  t.is(await balanceOf(customer), 15);
  t.deepEqual(await books(customer), []);
});

test('names as long as Stripe’s may be are booked', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const { paid, disputed, won } = course(customer.accountId, 'x'.repeat(180));
  for (const news of [paid, disputed, won]) t.is(await tell(news), 200);
  t.is(await balanceOf(customer), 20);
});

test('a refund that fails later gives back what it took, whatever is told first', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const late = course(customer.accountId);
  const steps: [News, number][] = [
    [late.paid, 20],
    [late.refunded, 15],
    [late.failed, 20],
    [late.refunded, 20],
  ];
  for (const [news, expected] of steps) {
    for (let time = 0; time < 2; time++) t.is(await tell(news), 200);
    t.is(await balanceOf(customer), expected, news.type);
  }
  const early = course(customer.accountId);
  for (const news of [early.failed, early.refunded, early.paid]) t.is(await tell(news), 200);
  t.is(await balanceOf(customer), 40, 'a refund that is known to have failed takes nothing');
  const crowd = course(customer.accountId);
  const all = [crowd.paid, crowd.refunded, crowd.failed];
  await Promise.all([...all, ...all, ...all].map(tell));
  t.is(await balanceOf(customer), 60);
  t.deepEqual(await books(customer), []);
});

test('money in another currency, and refunds that failed, change nothing', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const { inEuro, failed } = course(customer.accountId);
  for (const news of [inEuro, failed]) t.is(await tell(news), 200);
  t.is(await balanceOf(customer), 0);
  t.deepEqual(await books(customer), []);
});

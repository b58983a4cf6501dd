// Deposits: a checkout, its payment booked once, and what is not Stripe's refused.
import { createHmac } from 'node:crypto';
import test from 'ava';
import { newId } from '../../lib/kernel/ids.ts';
import { shared } from '../support/settings.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('deposits', { workers: [] });
});
test.after.always(() => stack?.close());

const pay = async (id: unknown): Promise<number> => {
  const answer = await fetch(`${stack.sim.url}/payments/${id}/pay`, { method: 'POST' });
  return ((await answer.json()) as { status: number }).status;
};

test('a payment is booked once, and lets an account send', async (t) => {
  const customer = await stack.customer({ money: 0 });
  const opened = await customer.live.post('/v1/clients/deposits', { amount: 49.99 });
  t.is(opened.status, 200);
  t.like(opened.data, { amount: 49.99, status: 'pending' });
  t.true(String(opened.data.checkout_url).startsWith('http'));
  const balance = async () => (await customer.live.get('/v1/clients/billing')).data.balance;
  t.is(await balance(), 0, 'nothing is booked before it is paid');
  for (let time = 0; time < 3; time++) t.is(await pay(opened.data.deposit_id), 200);
  t.is(await balance(), 49.99);
  const { items } = (await customer.live.get('/v1/clients/transactions')).data as {
    items: Record<string, unknown>[];
  };
  t.is(items.length, 1);
  t.like(items[0], {
    kind: 'deposit',
    amount: 49.99,
    reference: `deposit:${opened.data.deposit_id}`,
  });
});

test('the amount is bounded', async (t) => {
  const { live } = await stack.customer();
  for (const amount of [undefined, '50', 4.99, 10_000.01, 50.001, null]) {
    const answer = await live.post('/v1/clients/deposits', { amount });
    t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field: 'amount' }] }, `${amount}`);
  }
  for (const amount of [5, 10_000]) {
    t.is((await live.post('/v1/clients/deposits', { amount })).status, 200);
  }
});

const inbound = (body: string, signature: string) =>
  fetch(`${stack.url}/v1/inbound/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': signature },
    body,
  });

const signed = (body: string, at: number, secret: string = shared.stripe.webhookSecret) =>
  `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;

test('what Stripe did not sign, or signed long ago, books nothing', async (t) => {
  const { accountId, live } = await stack.customer({ money: 0 });
  const session = {
    ...{ id: 'cs_forged', object: 'checkout.session', payment_status: 'paid', currency: 'usd' },
    ...{ client_reference_id: accountId, amount_total: 100_000 },
  };
  const event = { id: 'evt_1', object: 'event', data: { object: session } };
  const body = JSON.stringify({ ...event, type: 'checkout.session.completed' });
  const now = Math.floor(Date.now() / 1000);
  t.is((await inbound(body, '')).status, 403);
  t.is((await inbound(body, signed(body, now, 'another secret'))).status, 403);
  t.is((await inbound(body, signed(body, now - 3_600))).status, 403);
  t.is((await inbound(`${body} `, signed(body, now))).status, 403);
  const unpaid = body.replace('"paid"', '"unpaid"');
  t.is((await inbound(unpaid, signed(unpaid, now))).status, 200);
  t.is((await live.get('/v1/clients/billing')).data.balance, 0);
});

test('a provider that refuses or is away is 503', async (t) => {
  const { createPayments } = await import('../../lib/channels/payments.ts');
  const { openDeposit } = await import('../../lib/billing/deposits.ts');
  const payments = createPayments({
    ...{
      secretKey: 'sk_wrong',
      webhookSecret: 'x',
      baseUrl: stack.sim.url,
      returnUrl: 'https://x',
    },
  });
  const { accountId } = await stack.customer({ money: 0 });
  const asked = { accountId, amount: 5 };
  const { checkouts, clock } = stack.api;
  const open = (some: typeof payments | undefined) =>
    openDeposit({ payments: some, checkouts, clock }, asked);
  await t.throwsAsync(open(payments), { message: /at the moment/ });
  await t.throwsAsync(open(undefined), { message: /not set up/ });
});

test('a payment for nobody we know is kept, shown by the books, and booked when it is claimed', async (t) => {
  const { claimPayment } = await import('../../lib/billing/deposits.ts');
  const { reconcile } = await import('../../lib/billing/reconcile.ts');
  const { accountId } = await stack.customer({ money: 0 });
  const session = {
    ...{ id: 'cs_stray', object: 'checkout.session', payment_status: 'paid', currency: 'usd' },
    ...{ client_reference_id: 'user_42', amount_total: 2_500 },
  };
  const event = { id: 'evt_2', object: 'event', data: { object: session } };
  const body = JSON.stringify({ ...event, type: 'checkout.session.completed' });
  const now = Math.floor(Date.now() / 1000);
  for (let time = 0; time < 2; time++) t.is((await inbound(body, signed(body, now))).status, 200);
  const stray = async () => {
    const { differences } = await reconcile(stack.api, Date.now() + 3_600_000);
    return differences.filter(({ detail }) => detail === 'payment cs_stray').length;
  };
  t.is(await stray(), 1);
  for (let time = 0; time < 2; time++) {
    await claimPayment(stack.api, { name: 'cs_stray', accountId });
  }
  t.is((await stack.api.ledger.balance(accountId))?.micros, 25_000_000);
  t.is(await stray(), 0);
  const other = await stack.customer({ money: 0 });
  await t.throwsAsync(claimPayment(stack.api, { name: 'cs_stray', accountId: other.accountId }));
  await t.throwsAsync(claimPayment(stack.api, { name: 'cs_none', accountId }));
});

const paidBody = (session: Record<string, unknown>) =>
  JSON.stringify({
    ...{ id: 'evt_3', object: 'event', type: 'checkout.session.completed' },
    data: {
      object: {
        ...{ object: 'checkout.session', payment_status: 'paid', currency: 'usd' },
        amount_total: 700,
        ...session,
      },
    },
  });

const told = async (session: Record<string, unknown>): Promise<number> => {
  const body = paidBody(session);
  return (await inbound(body, signed(body, Math.floor(Date.now() / 1000)))).status;
};

test('a payment link with the account of somebody in its address books nothing: it waits among the unclaimed', async (t) => {
  const { accountId, live } = await stack.customer({ money: 0 });
  const opened = await live.post('/v1/clients/deposits', { amount: 5 });
  t.is(opened.status, 200);
  const links: Record<string, unknown>[] = [
    { id: 'cs_link_1', client_reference_id: accountId },
    { id: 'cs_link_2', client_reference_id: accountId, metadata: {} },
    { id: 'cs_link_3', client_reference_id: accountId, metadata: { tessera_checkout: accountId } },
    { id: 'cs_link_4', client_reference_id: accountId, metadata: { tessera_checkout: 'x' } },
  ];
  for (const link of links) t.is(await told(link), 200);
  t.is((await stack.api.ledger.balance(accountId))?.micros, 0);
  const unclaimed = (await stack.api.payers.unclaimed(100)).map(({ name }) => name);
  for (const { id } of links) t.true(unclaimed.includes(String(id)), String(id));
  t.is(await pay(opened.data.deposit_id), 200);
  t.is(
    (await stack.api.ledger.balance(accountId))?.micros,
    5_000_000,
    'its own checkout is booked',
  );
});

test('a checkout is booked to the account that opened it, though the process died before it knew its name', async (t) => {
  const { accountId } = await stack.customer({ money: 0 });
  const other = await stack.customer({ money: 0 });
  const checkout = newId();
  await stack.api.checkouts.open({
    ...{ id: checkout, accountId, amountMicros: 7_000_000, at: Date.now() },
  });
  const paid = {
    ...{ id: 'cs_late', client_reference_id: other.accountId },
    metadata: { tessera_checkout: checkout },
  };
  for (let time = 0; time < 2; time++) t.is(await told(paid), 200);
  t.is((await stack.api.ledger.balance(accountId))?.micros, 7_000_000);
  t.is(await told({ ...paid, id: 'cs_second' }), 200);
  t.is((await stack.api.ledger.balance(accountId))?.micros, 7_000_000, 'one checkout, one payment');
  t.is((await stack.api.ledger.balance(other.accountId))?.micros, 0);
});

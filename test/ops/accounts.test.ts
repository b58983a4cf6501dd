// Accounts, the platform and messages over the ops listener: found, looked at, changed, and every change on record.
import test, { type ExecutionContext } from 'ava';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { andHeard } from '../support/heard.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;
let customer: Customer;

test.before(async () => {
  stack = await startStack('opsaccounts', { settings: { REACHABILITY_WINDOW_MS: '0' } });
  ops = await startOps(stack);
  customer = await stack.customer({ money: 100 });
});

test.after.always(async () => {
  await ops?.close();
  await stack?.close();
});

const pathOf = (rest = ''): string => `/ops/api/accounts/${customer.accountId}${rest}`;
/** Posts, and waits until every process has heard of it. */
const postHeard = (
  t: ExecutionContext,
  [path, body]: readonly [path: string, body: unknown],
  holds?: Parameters<typeof andHeard>[3],
) => andHeard(t, stack, () => ops.post(path, body), holds);
const lastAct = async () => (await ops.get('/ops/api/audit?limit=1')).data.items[0];

test.serial('accounts are found by id, e-mail, phone and name, page by page', async (t) => {
  const other = await stack.customer({ money: 0 });
  const ids = async (q: string): Promise<string[]> =>
    (await ops.post('/ops/api/accounts/search', { q })).data.items.map(
      ({ id }: { id: string }) => id,
    );
  t.deepEqual(await ids(customer.accountId), [customer.accountId]);
  t.deepEqual(await ids(customer.email.slice(0, -8)), [customer.accountId]);
  t.deepEqual((await ids('ustome')).slice(0, 2), [other.accountId, customer.accountId]);
  t.true((await ids('+1415555')).includes(customer.accountId));
  t.true((await ids('+1 (415) 555')).includes(customer.accountId));
  t.deepEqual(await ids('100%'), []);
  t.is((await ops.get('/ops/api/accounts?q=%2B14155550100')).status, 400);
  t.deepEqual(await ids('nobody@nowhere'), []);
  const first = (await ops.post('/ops/api/accounts/search', { q: 'Customer', limit: 1 })).data;
  t.is(first.items[0].id, other.accountId);
  const rest = { q: 'Customer', limit: 1, before: first.next_before };
  const second = (await ops.post('/ops/api/accounts/search', rest)).data;
  t.is(second.items[0].id, customer.accountId);
  t.is(second.items[0].phone, '+1415*****00');
});

test.serial(
  'an account shows state, balance, limits and what failed lately; no whole number anywhere',
  async (t) => {
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'unreachable_sync' });
    t.is((await customer.live.send(phone.number)).status, 409);
    const { data, text } = await eventually(t, async () => {
      const answer = await ops.get(pathOf());
      return answer.data.recent_failures.length > 0 ? answer : undefined;
    });
    t.like(data, { status: 'active', plan: 'trial', balance: 100, email: customer.email });
    t.is(data.billing.balance, 100);
    t.truthy(data.limits);
    t.like(data.recent_failures[0], { failure_reason: 'not_on_channel', status: 'failed' });
    t.false(text.includes(phone.number));
    t.is((await ops.get('/ops/api/accounts/0192f0c1-7a3b-7c4d-8e5f-0123456789ab')).status, 404);
  },
);

test.serial('suspended everywhere within a second, and taken back', async (t) => {
  const suspended = await postHeard(t, [pathOf('/suspend'), { reason: 'spam' }]);
  t.like(suspended.data, { status: 'suspended', suspended_reason: 'spam' });
  t.is((await customer.live.send(stack.phone().number)).error.code, 'ACCOUNT_SUSPENDED');
  t.like(await lastAct(), {
    actor: 'Tester',
    action: 'account.suspend',
    subject: customer.accountId,
    status: 'done',
    detail: { reason: 'spam' },
  });
  const back = await postHeard(t, [pathOf('/reinstate'), {}]);
  t.like(back.data, { status: 'active', suspended_reason: null });
  t.is((await customer.live.send(stack.phone().number)).status, 200);
  t.is((await ops.post(pathOf('/suspend'), {})).status, 400);
});

test.serial(
  'a payment for nobody we know is shown, and booked to the account it is claimed for',
  async (t) => {
    const [stray, foreign] = [newId(), newId()].map((id) => `cs_${id}`) as [string, string];
    for (const [name, at] of [
      [stray, 1],
      [foreign, 2],
    ] as const) {
      const kept = { name, account: 'user_42', accountId: null, amountMicros: 7_500_000 };
      await stack.api.payers.keep({ ...kept, intent: null, at });
    }
    const shown = (await ops.get('/ops/api/payments')).data;
    t.deepEqual(shown.items[0], {
      ...{ payment: stray, named: 'user_42', amount: 7.5, received_at: '1970-01-01T00:00:00.001Z' },
    });
    const mine = await stack.customer({ money: 0 });
    const claim = (name: string, account: string) =>
      ops.post(`/ops/api/payments/${name}/claim`, { account });
    t.is((await claim(stray, newId())).status, 404, 'nobody of that name');
    t.is((await claim('cs_none', mine.accountId)).status, 404);
    for (const _ of ['once', 'again']) {
      t.is((await claim(stray, mine.accountId)).data.balance, 7.5);
      t.like(await lastAct(), {
        action: 'payment.claim',
        detail: { payment: stray },
        status: 'done',
      });
    }
    t.is((await claim(stray, customer.accountId)).status, 404, 'it is somebody’s');
    const left = (await ops.get('/ops/api/payments')).data.items as { payment: string }[];
    t.deepEqual(
      left.map(({ payment }) => payment),
      [foreign],
    );
    t.is((await claim(foreign, mine.accountId)).data.balance, 15);
  },
);

test.serial('credit and corrections are booked once under one reference', async (t) => {
  const body = { amount: 12.5, reference: 'bank-1', note: 'Wire' };
  const first = await ops.post(pathOf('/credit'), body);
  t.like(first.data, { reference: 'deposit:bank-1', booked: true });
  t.is(first.data.account.balance, 112.5);
  t.like(await lastAct(), { action: 'account.deposit', status: 'done', affected: 1 });
  const again = await ops.post(pathOf('/credit'), body);
  t.like(again.data, { reference: 'deposit:bank-1', booked: false });
  t.is(again.data.account.balance, 112.5);
  t.like(await lastAct(), { action: 'account.deposit', status: 'done', affected: 0 });
  const other = await ops.post(pathOf('/credit'), { ...body, amount: 13 });
  t.is(other.status, 400);
  t.regex(other.error.details?.[0]?.issue ?? '', /was booked already, with an amount of 12\.5/);
  t.like(await lastAct(), { status: 'failed', affected: 0, error: 'VALIDATION_ERROR' });
  const down = await ops.post(pathOf('/credit'), { kind: 'adjust', amount: -2.5, note: null });
  t.is(down.data.account.balance, 110);
  t.like(await lastAct(), { action: 'account.adjust', detail: { amount: -2.5 }, status: 'done' });
  for (const amount of [0, -1, 1e9, 0.0000001, '5']) {
    t.is((await ops.post(pathOf('/credit'), { amount, note: null })).status, 400, String(amount));
  }
  t.is((await ops.get(pathOf())).data.balance, 110);
  const books = await ops.post('/ops/api/reconcile');
  t.like(books.data, { agree: true, difference_count: 0 });
});

test.serial('an own price, and the platform’s: what a send costs within a second', async (t) => {
  const own = await ops.post(pathOf('/price'), { country: 'US', price: 0.011 });
  t.deepEqual(own.data.prices, [{ country: 'US', price: 0.011, source: 'account' }]);
  const platform = await ops.post('/ops/api/platform/price', {
    country: 'DE',
    price: 0.09,
    cost: 0.05,
  });
  t.like(platform.data.prices[0], { country: 'DE', price: 0.09, cost: 0.05 });
  const listed = await customer.live.get('/v1/clients/pricing');
  t.is((listed.data.items as unknown[]).length, 2);
  t.deepEqual((await ops.post(pathOf('/price'), { country: 'US', price: null })).data.prices, []);
  for (const country of ['us', 'UK', 'ZZ', 'USA']) {
    t.is((await ops.post(pathOf('/price'), { country, price: 1 })).status, 400, country);
    const all = { country, price: 1, cost: 1 };
    t.is((await ops.post('/ops/api/platform/price', all)).status, 400, country);
  }
  const dust = { country: 'US', price: 0.0000001, cost: 0 };
  t.is((await ops.post('/ops/api/platform/price', dust)).status, 400);
});

test.serial('switches: the shared number paused for one account and for all', async (t) => {
  const one = await postHeard(t, [pathOf('/shared-number'), { paused: true }]);
  t.true(one.data.shared_number_paused);
  t.is((await customer.live.send(stack.phone().number)).error.code, 'CENTRAL_WHATSAPP_PAUSED');
  await postHeard(t, [pathOf('/shared-number'), { paused: false }]);
  const turn = (paused: boolean) =>
    postHeard(t, ['/ops/api/platform/switch', { name: 'shared_number', paused }]);
  const all = await turn(true);
  t.like(all.data.switches[0], { name: 'shared_number', paused: true });
  t.is((await customer.live.send(stack.phone().number)).error.code, 'CENTRAL_WHATSAPP_PAUSED');
  await turn(false);
  t.is((await customer.live.send(stack.phone().number)).status, 200);
  t.is(
    (await ops.post('/ops/api/platform/switch', { name: 'everything', paused: true })).status,
    400,
  );
});

test.serial(
  'countries of the shared number and the guard’s mode change for all processes, and back',
  async (t) => {
    const only = await postHeard(
      ...([t, ['/ops/api/platform/countries', { countries: ['DE', 'FR'] }]] as const),
      ({ platform }) => platform.sharedCountries().has('DE'),
    );
    t.deepEqual(only.data.shared_countries, ['DE', 'FR']);
    t.is(
      (await customer.live.send(stack.phone().number)).error.code,
      'CENTRAL_WHATSAPP_UNSUPPORTED_REGION',
    );
    t.deepEqual(
      (await ops.post('/ops/api/platform/countries', { countries: null })).data.shared_countries,
      [],
    );
    const shadow = await postHeard(
      ...([t, ['/ops/api/platform/guard', { mode: 'shadow' }]] as const),
      ({ platform }) => platform.guardMode() === 'shadow' && platform.sharedCountries().size === 0,
    );
    t.is(shadow.data.pumping_guard.mode, 'shadow');
    t.is((await customer.live.send(stack.phone().number)).status, 200);
    t.is(
      (await ops.post('/ops/api/platform/guard', { mode: null })).data.pumping_guard.mode,
      'enforce',
    );
    t.is((await ops.post('/ops/api/platform/guard', { mode: 'loud' })).status, 400);
    t.is((await ops.post('/ops/api/platform/countries', { countries: ['UK'] })).status, 400);
  },
);

test.serial('a message is found by id, phone and request id, and tells its timeline', async (t) => {
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number, { 'X-Request-Id': 'ops-lookup-1' });
  const id = String(sent.data.message_id);
  await customer.live.verify(phone.number, await phone.code());
  for (const q of [id, id.slice(4), phone.number, 'ops-lookup-1']) {
    const found = await eventually(t, async () => {
      const { items } = (await ops.post('/ops/api/messages/search', { q })).data;
      return items.length > 0 ? items : undefined;
    });
    t.is(found[0].message_id, id, q);
    t.is(found[0].request_id, 'ops-lookup-1');
    t.not(found[0].phone, phone.number);
  }
  const one = await eventually(t, async () => {
    const { data } = await ops.get(`/ops/api/messages/${id}`);
    const told = data?.steps.map(({ type }: { type: string }) => type) ?? [];
    // Written by a worker of its own, in whatever order it hears of them.
    return ['otp.sent', 'otp.verified'].every((type) => told.includes(type)) ? data : undefined;
  });
  const steps = one.steps.map(({ type }: { type: string }) => type);
  t.is(steps[0], 'otp.requested');
  t.is(one.message.account_id, customer.accountId);
  t.is((await ops.get('/ops/api/messages/otp_nothing')).status, 404);
  t.deepEqual((await ops.post('/ops/api/messages/search', { q: 'nothing' })).data.items, []);
});

test.serial('a message is found by the request id that the service made itself', async (t) => {
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number);
  const made = String(sent.headers.get('x-request-id'));
  t.regex(made, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const [found] = await eventually(t, async () => {
    const { items } = (await ops.post('/ops/api/messages/search', { q: made })).data;
    return items.length > 0 ? items : undefined;
  });
  t.like(found, { message_id: sent.data.message_id, request_id: made });
  t.deepEqual((await ops.post('/ops/api/messages/search', { q: `otp_${made}` })).data.items, []);
});

test.serial('a request for capacity waits for its review', async (t) => {
  const wish = {
    ...{ requested_sustained_per_minute: 2_000, requested_burst_per_10_seconds: 600 },
    ...{ expected_sustained_per_minute: 1_500, expected_peak_per_minute: 1_800 },
    business_justification: 'We grow quickly and need more room for our sign-ups.',
  };
  const asked = await customer.live.post('/v1/clients/capacity-requests', wish);
  t.is(asked.status, 201, asked.text);
  const { items, more } = (await ops.get('/ops/api/capacity')).data;
  t.false(more);
  t.is(items[0].account_id, customer.accountId);
  const path = pathOf(`/capacity/${items[0].id}`);
  t.is((await ops.post(path, { per_minute: 100_000_000, note: null })).status, 400);
  const done = await ops.post(path, { per_minute: 2_000, note: 'Fine' });
  t.is(done.data.status, 'approved', done.text);
  t.deepEqual((await ops.get('/ops/api/capacity')).data.items, []);
  t.is((await ops.post(path, { per_minute: 2_000, note: null })).status, 404);
});

test.serial(
  'of more requests than a page takes the oldest are shown, and that others wait',
  async (t) => {
    const { db } = stack.api;
    const [row] = await db('capacity_requests').limit(1);
    const copies = Array.from({ length: 101 }, () => ({
      ...{ ...row, id: idBytes(newId()), status: 'pending' },
    }));
    await db('capacity_requests').insert(copies);
    const { items, more } = (await ops.get('/ops/api/capacity')).data;
    t.is(items.length, 100);
    t.true(more);
    await db('capacity_requests').where({ status: 'pending' }).delete();
  },
);

test.serial(
  'what fails is on record as failed, and what cannot be recorded is not done',
  async (t) => {
    const path = `/ops/api/accounts/${customer.accountId}/capacity/0192f0c1-7a3b-7c4d-8e5f-0123456789ab`;
    t.is((await ops.post(path, { per_minute: null, note: null })).status, 404);
    const { insert } = ops.app.audit;
    ops.app.audit.insert = () =>
      Promise.reject(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }));
    const refused = await ops.post(pathOf('/suspend'), { reason: 'x' });
    ops.app.audit.insert = insert;
    t.is(refused.status, 503);
    t.is((await ops.get(pathOf())).data.status, 'active');
  },
);

test.serial('no note of an operator takes control characters or turns of direction', async (t) => {
  const before = (await ops.get('/ops/api/audit?limit=1')).data.items[0]?.id;
  const review = pathOf(`/capacity/${newId()}`);
  const calls: [string, Record<string, unknown>, string][] = [
    [pathOf('/suspend'), {}, 'reason'],
    [pathOf('/credit'), { amount: 1 }, 'note'],
    [review, { per_minute: 600 }, 'note'],
    ['/ops/api/channels/pause', { channel: 'telegram' }, 'note'],
  ];
  for (const [path, body, field] of calls) {
    for (const bad of ['fraud \u001b[2K', 'fraud \u202Etxt']) {
      const { status, error } = await ops.post(path, { ...body, [field]: bad });
      t.is(status, 400, path);
      t.like(error, { code: 'VALIDATION_ERROR', details: [{ field }] }, path);
      t.regex(error.details?.[0]?.issue ?? '', /^must not hold U\+(001B|202E): /, path);
    }
  }
  t.is((await ops.get('/ops/api/audit?limit=1')).data.items[0]?.id, before, 'nothing was done');
});

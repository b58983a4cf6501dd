// Limits and capacity: the document in every state of an account, and requests from asking to the end of a tier.
import test from 'ava';
import { listen } from '../../api/listen.ts';
import { createApiApp } from '../../lib/app.ts';
import { cancelCapacity, reviewCapacity } from '../../lib/capacity/request.ts';
import { day } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { accountEvent } from '../../lib/messages/events.ts';
import { tellLeftNews } from '../../lib/messages/news.ts';
import { createClient } from '../support/client.ts';
import { listenForEvents } from '../support/events.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const path = '/v1/clients/capacity-requests';

test.before(async () => {
  stack = await startStack('capacity', { clock, settings: { TRIAL_VERIFICATIONS: '1' } });
});
test.after.always(() => stack?.close());

const wish = {
  ...{ requested_sustained_per_minute: 1_000, requested_burst_per_10_seconds: 400 },
  ...{ expected_sustained_per_minute: 600, expected_peak_per_minute: 900 },
  business_justification: 'A launch in three countries next month.',
};

type Wrapped = {
  schema_version: string;
  capacity_request: Record<string, unknown> & { id: string };
};

const ask = async ({ live }: Customer, more: object = {}) => {
  const answer = await live.post(path, { ...wish, ...more });
  return { answer, wrapped: answer.data as Wrapped };
};

const document = async ({ live }: Customer) =>
  (await live.get('/v1/clients/limits')).data as Record<string, Record<string, unknown>>;

test.serial('a request is made with 201, listed, and taken back once', async (t) => {
  const customer = await stack.customer();
  const { answer, wrapped } = await ask(customer, { supporting_facts: 'Contracts signed.' });
  t.is(answer.status, 201);
  t.is(wrapped.schema_version, '2026-09-01');
  t.like(wrapped.capacity_request, {
    ...{ ...wish, supporting_facts: 'Contracts signed.', status: 'pending' },
    ...{ cancelled_at: null, reviewed_at: null },
  });
  t.deepEqual(Object.keys(wrapped.capacity_request).sort(), [
    ...['business_justification', 'cancelled_at', 'created_at', 'expected_peak_per_minute'],
    ...['expected_sustained_per_minute', 'id', 'requested_burst_per_10_seconds'],
    ...[
      'requested_sustained_per_minute',
      'reviewed_at',
      'status',
      'supporting_facts',
      'updated_at',
    ],
  ]);
  const again = (await ask(customer)).answer;
  t.is(again.status, 409);
  t.is(again.error.code, 'CAPACITY_REQUEST_PENDING', 'one at a time');
  const one = `${path}/${wrapped.capacity_request.id}`;
  t.deepEqual((await customer.session.get(one)).data, wrapped);
  for (let time = 0; time < 2; time++) {
    const cancelled = (await customer.live.call('DELETE', one)).data as Wrapped;
    t.is(cancelled.capacity_request.status, 'cancelled');
    t.truthy(cancelled.capacity_request.cancelled_at);
  }
  t.is((await ask(customer)).answer.status, 201, 'and another may be made');
  const { items } = (await customer.live.get(path)).data as { items: { status: string }[] };
  t.deepEqual(
    items.map(({ status }) => status),
    ['pending', 'cancelled'],
  );
});

test.serial('of many requests at once one is made', async (t) => {
  const customer = await stack.customer();
  const all = await Promise.all(Array.from({ length: 8 }, () => ask(customer)));
  t.is(all.filter(({ answer }) => answer.status === 201).length, 1);
});

test.serial('approval lifts the account’s limits, and they fall back by themselves', async (t) => {
  const customer = await stack.customer();
  const events = await listenForEvents(stack, 'capacity_request.updated');
  const { wrapped } = await ask(customer);
  const given = {
    accountId: customer.accountId,
    id: wrapped.capacity_request.id,
    requestId: 'ops',
  };
  await reviewCapacity(stack.api, {
    ...given,
    perMinute: 1_000,
    note: null,
    expiresAt: clock.now() + day,
  });
  await t.throwsAsync(reviewCapacity(stack.api, { ...given, perMinute: null, note: 'no' }));
  const sent = await customer.live.send(aNumber());
  t.is(sent.headers.get('x-service-rate-tier'), 'tier-1000');
  t.like(await document(customer), {
    effective_policy: { tier: 'tier-1000', sustained_per_minute: 1_000, source: 'reviewed' },
    capacity_request: { status: 'approved' },
  });
  const cancel = await customer.live.call('DELETE', `${path}/${given.id}`);
  t.is(cancel.error.code, 'VALIDATION_ERROR', 'what was reviewed is not taken back');
  clock.forward(day + 1);
  t.is((await customer.live.send(aNumber())).headers.get('x-service-rate-tier'), 'standard');
  await eventually(t, () => events.heard[1]);
  t.deepEqual(
    events.heard.map(({ data }) => data.status),
    ['pending', 'approved'],
  );
  await events.close();
});

const statesHeard = (heard: readonly { data: Record<string, unknown> }[], id: string) =>
  heard.filter(({ data }) => data.capacity_request_id === id).map(({ data }) => data.status);

test.serial('every change of a request is told, also when the broker was away', async (t) => {
  const customer = await stack.customer();
  const { accountId } = customer;
  const events = await listenForEvents(stack, 'capacity_request.updated');
  const first = (await ask(customer)).wrapped.capacity_request.id;
  const away = { announce: () => Promise.reject(new Error('away')) };
  const deps = { ...stack.api, announcer: away };
  const cancelled = await cancelCapacity(deps, { accountId, id: first, requestId: 'c' });
  t.is(cancelled.status, 'cancelled', 'it is done all the same');
  const second = (await ask(customer)).wrapped.capacity_request.id;
  const no = { accountId, id: second, requestId: 'ops', note: 'not yet', perMinute: null };
  await reviewCapacity(stack.api, no);
  t.is((await stack.api.accounts.find(accountId))?.tier.name, 'standard');
  clock.forward(11_000);
  await tellLeftNews(stack.api);
  await eventually(t, () => statesHeard(events.heard, first)[1]);
  await eventually(t, () => statesHeard(events.heard, second)[1]);
  t.deepEqual(statesHeard(events.heard, first), ['pending', 'cancelled']);
  t.deepEqual(statesHeard(events.heard, second), ['pending', 'rejected']);
  await events.close();
});

test.serial('an approval is whole: state, tier and news, or nothing of it', async (t) => {
  const customer = await stack.customer();
  const { accountId } = customer;
  const { id } = (await ask(customer)).wrapped.capacity_request;
  const told = accountEvent('capacity_request.updated', {
    ...{ accountId, mode: 'live', at: clock.now(), requestId: 'ops', subject: `${id} approved` },
    data: { capacity_request_id: id, status: 'approved' },
  });
  // A tier that its column does not take: as good as a crash in between.
  const tier = { name: 'custom', perMinute: -1, expiresAt: clock.now() + day } as const;
  const approved = { status: 'approved', at: clock.now(), note: null, tier, told } as const;
  await t.throwsAsync(stack.api.capacity.settle(accountId, id, approved));
  t.is((await stack.api.capacity.find(accountId, id))?.status, 'pending');
  t.is((await stack.api.accounts.find(accountId))?.tier.name, 'standard');
  const left = await stack.api.news.leftBefore(clock.now() + 1, 100);
  t.false(left.some((event) => event.id === told.id));
});

test.serial('of cancelling and approving at once one holds, and the tier is its', async (t) => {
  for (let round = 0; round < 5; round++) {
    const customer = await stack.customer();
    const { accountId } = customer;
    const { id } = (await ask(customer)).wrapped.capacity_request;
    const given = { accountId, id, requestId: 'race' };
    const [cancelled, reviewed] = await Promise.allSettled([
      cancelCapacity(stack.api, given),
      reviewCapacity(stack.api, { ...given, note: null, perMinute: 5_000 }),
    ]);
    t.not(cancelled.status, reviewed.status);
    const status = (await stack.api.capacity.find(accountId, id))?.status;
    const won = reviewed.status === 'fulfilled';
    t.is(status, won ? 'approved' : 'cancelled');
    const tier = (await stack.api.accounts.find(accountId))?.tier.name;
    t.is(tier, won ? 'tier-5000' : 'standard');
  }
});

test.serial('the fields of a request are bounded', async (t) => {
  const { live } = await stack.customer();
  const wrong: [string, unknown][] = [
    ...Object.keys(wish)
      .slice(0, 4)
      .flatMap((field) =>
        [0, 20_001, 1.5, '100', undefined].map((v): [string, unknown] => [field, v]),
      ),
    ['business_justification', 'too short'],
    ['business_justification', 'x'.repeat(2_001)],
    ['supporting_facts', 'x'.repeat(4_001)],
    ['tier', 'tier-5000'],
  ];
  for (const [field, value] of wrong) {
    const answer = await live.post(path, { ...wish, [field]: value });
    t.like(answer.error, { code: 'VALIDATION_ERROR', details: [{ field }] }, `${field} ${value}`);
    await stack.api.redis.del(`${stack.config.keyPrefix}read:cw:x`);
  }
});

const topLevel = [
  ...[
    'account',
    'allowances',
    'capacity_request',
    'effective_policy',
    'eligibility',
    'generated_at',
  ],
  ...['recent_throttles', 'safety_controls', 'schema_version', 'usage'],
];

test.serial('the document has exactly the contract’s parts, in every state', async (t) => {
  const trial = await stack.customer({ money: 0 });
  const paid = await stack.customer();
  const capped = await stack.customer();
  await capped.live.call('PATCH', '/v1/clients/settings', { body: { spend_cap_hourly: 0 } });
  await stack.api.ledger.setPlan(capped.accountId, 'trial', 'pay_per_success');
  const empty = await stack.customer({ money: 0 });
  await stack.api.ledger.setPlan(empty.accountId, 'trial', 'pay_per_success');
  await stack.api.revocations.announce();
  const expected: [Customer, string[]][] = [
    [trial, []],
    [paid, []],
    [capped, ['SPEND_CAP_EXCEEDED']],
    [empty, ['DEPOSIT_REQUIRED']],
  ];
  for (const [customer, blockers] of expected) {
    const limits = await document(customer);
    t.deepEqual(Object.keys(limits).sort(), topLevel);
    t.deepEqual(Object.keys(limits.account ?? {}).sort(), ['billing_plan', 'status']);
    t.deepEqual(limits.eligibility?.blocked_by, blockers);
    t.is(limits.eligibility?.can_send, blockers.length === 0);
    const { error } = await customer.live.send(aNumber());
    t.is(error.code, blockers[0], 'and a send hears the same');
  }
  t.like(await document(trial), { allowances: { shared_number: { allowance: 10, used: 1 } } });
});

test.serial('refusals are shown to their account, and use is counted', async (t) => {
  const customer = await stack.customer();
  const phone = stack.phone().number;
  await customer.live.send(phone);
  t.is((await customer.live.send(phone)).status, 429);
  const limits = await eventually(t, async () => {
    const found = await document(customer);
    return (found.recent_throttles as unknown as object[]).length > 0 ? found : undefined;
  });
  t.like((limits.recent_throttles as unknown as object[])[0], {
    ...{ code: 'RATE_LIMIT_EXCEEDED', reason: 'cooldown', dimension: 'recipient', limit: 1 },
    ...{ window_seconds: 30, operation: 'POST /v1/otp/send', mode: 'live' },
  });
  t.like(limits.usage, {
    burst: { used: 1, limit: 100, remaining: 99 },
    hourly: { limit: 18_000 },
  });
  t.false(JSON.stringify(limits).includes(phone.slice(1)));
  for (let time = 0; time < 6; time++) await customer.session.get('/v1/clients/otps/export');
  t.is((await customer.session.get('/v1/clients/otps/export')).status, 429);
  const newest = await eventually(t, async () => {
    const [first] = (await document(customer)).recent_throttles as unknown as Record<
      string,
      unknown
    >[];
    return first?.mode === null ? first : undefined;
  });
  t.like(newest, { operation: 'GET /v1/clients/otps/export', dimension: 'account', limit: 6 });
});

test.serial('an approval holds on every process within seconds', async (t) => {
  const customer = await stack.customer();
  const { id } = (await ask(customer)).wrapped.capacity_request;
  const { config } = stack;
  const other = await createApiApp({ config, log: silentLog, processName: 'api2', clock });
  const door = await listen(other);
  const there = createClient(`http://127.0.0.1:${door.port}`, customer.live.key);
  const allowed = async () => {
    const { data } = await there.get('/v1/clients/limits');
    return (data.effective_policy as { sustained_per_minute: number }).sustained_per_minute;
  };
  try {
    t.is(await allowed(), 300);
    const given = { accountId: customer.accountId, id, requestId: 'ops', note: null };
    await reviewCapacity(stack.api, { ...given, perMinute: 1_000 });
    await eventually(t, async () => ((await allowed()) === 1_000 ? true : undefined), 3_000);
  } finally {
    await door.close();
    await other.close();
  }
});

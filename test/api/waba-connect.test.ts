// Connecting an own WhatsApp number: by token and by Embedded Signup, with every failure the provider can answer.

import test, { type ExecutionContext } from 'ava';
import type { JsonRoute } from '../../api/route.ts';
import type { EventWire } from '../../lib/jobs.ts';
import {
  aBusiness,
  captureEvents,
  connect,
  detailsOf,
  fault,
  isRefused,
  signUp,
} from '../support/connections.ts';
import { control } from '../support/control.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let events: EventWire[];

test.before(async () => {
  stack = await startStack('wabac', { workers: [] });
  events = captureEvents(stack);
});
test.after.always(() => stack?.close());

const eventsOf = ({ accountId }: Customer): string[] =>
  events.filter((event) => event.account_id === accountId).map(({ type }) => type);

const nothingConnected = async (t: ExecutionContext, customer: Customer, why: string) => {
  t.is(await detailsOf(customer), null, why);
  t.deepEqual(eventsOf(customer), [], why);
  const sender = await stack.worker.resolveSender(customer.accountId);
  t.is(sender?.shared, true, why);
};

test('without a number details say so', async (t) => {
  const customer = await stack.customer();
  for (const client of [customer.session, customer.live, customer.test]) {
    const answer = await client.get('/v1/clients/waba/details');
    t.deepEqual(answer.data, { connection: null });
  }
});

test('a number is connected with its token, by key and by session', async (t) => {
  for (const kind of ['live', 'session'] as const) {
    const customer = await stack.customer();
    const business = await aBusiness(stack, { name: 'Example shop', digits: '15550001234' });
    const answer = await connect(customer[kind], business);
    t.is(answer.status, 200, answer.text);
    const { connection } = answer.data;
    t.like(connection, {
      ...{ status: 'connected', broken_at: null, source: 'manual', quality_rating: 'green' },
      ...{ phone_number_id: business.phone_number_id, waba_id: business.waba_id },
      ...{ display_name: 'Example shop', display_phone_number: '+1 555-000-1234' },
      template: { name: 'otp_code', language: 'en_US', status: 'not_created' },
    });
    t.deepEqual(await detailsOf(customer), connection as never);
    t.deepEqual(eventsOf(customer), ['whatsapp.connected']);
  }
});

test('without its account a number is connected too, and its templates are nobody’s business', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  const answer = await connect(customer.live, business, {
    ...{ waba_id: undefined, display_name: 'Ours' },
  });
  t.is(answer.status, 200, answer.text);
  t.like(answer.data.connection, {
    ...{ waba_id: null, display_name: 'Ours', template: { status: 'unknown' } },
  });
  for (const call of ['check', 'create']) {
    isRefused(t, await customer.live.post(`/v1/clients/waba/template/${call}`, {}), 'waba_id');
  }
});

test('Embedded Signup connects, subscribes and registers', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack, { registered: false });
  const answer = await signUp(customer.session, business, business.code);
  t.is(answer.status, 200, answer.text);
  t.like(answer.data.connection, { source: 'embedded_signup', status: 'connected' });
  const state = await control<Record<string, unknown>>(
    ...([stack.sim.url, 'PATCH', `/businesses/${business.waba_id}`, {}] as const),
  );
  t.is(state.subscribed, true);
  const found = await stack.api.connections.find(customer.accountId);
  const context = { purpose: 'whatsapp-token', record: found?.id ?? '' };
  const token = stack.api.sealer.open(found?.sealedToken ?? '', context);
  const number = await stack.api.management.readNumber(token, business.phone_number_id);
  t.is(number.status, 'CONNECTED');
});

test('bounds are held on both sides, and unknown fields are refused', async (t) => {
  const { live } = await stack.customer();
  const sound = { phone_number_id: '1'.repeat(20), access_token: 'x' };
  const wrong: [field: string, value: unknown][] = [
    ...[['phone_number_id', '1'.repeat(21)] as const, ['phone_number_id', ''] as const],
    ...[['phone_number_id', '12a'] as const, ['phone_number_id', 12] as const],
    ...[['phone_number_id', undefined] as const, ['access_token', ''] as const],
    ...[['access_token', undefined] as const, ['waba_id', '1'.repeat(21)] as const],
    ...[['waba_id', ''] as const, ['display_name', 'x'.repeat(513)] as const, ['more', 1] as const],
    ...[['display_name', 'half \ud83d'] as const],
  ].map(([field, value]) => [field, value]);
  for (const [field, value] of wrong) {
    const body = { ...sound, [field]: value };
    isRefused(t, await live.post('/v1/clients/connect-whatsapp', body), field);
  }
  // Inside the bounds it is the provider that knows neither token.
  for (const more of [{}, { phone_number_id: '1', waba_id: '1', display_name: 'x'.repeat(512) }]) {
    const answer = await live.post('/v1/clients/connect-whatsapp', { ...sound, ...more });
    isRefused(t, answer, 'access_token', /not accepted/);
  }
  for (const token of ['a\nb', 'ü', 'x'.repeat(5000)]) {
    const answer = await live.post('/v1/clients/connect-whatsapp', {
      ...sound,
      access_token: token,
    });
    isRefused(t, answer, 'access_token', /cannot be/);
  }
});

test('a signup’s bounds are held on both sides', async (t) => {
  const { live } = await stack.customer();
  const path = '/v1/clients/waba/embedded-signup';
  const sound = { code: 'x', waba_id: '1', phone_number_id: '1' };
  const wrong: [field: string, value: unknown][] = [
    ...[['code', ''] as const, ['code', 'x'.repeat(2049)] as const, ['code', undefined] as const],
    ...[['waba_id', undefined] as const, ['waba_id', '1'.repeat(21)] as const],
    ...[['phone_number_id', undefined] as const, ['phone_number_id', 'x'] as const],
    ...[['access_token', 'x'] as const],
  ].map(([field, value]) => [field, value]);
  for (const [field, value] of wrong) {
    isRefused(t, await live.post(path, { ...sound, [field]: value }), field);
  }
  for (const code of ['x', 'x'.repeat(2048)]) {
    isRefused(t, await live.post(path, { ...sound, code }), 'code', /not a code/);
  }
});

test('a token, number or account that the provider does not confirm connects nothing', async (t) => {
  const customer = await stack.customer();
  const [own, other] = [await aBusiness(stack), await aBusiness(stack)];
  const sibling = await aBusiness(stack);
  const wrong: [more: Record<string, unknown>, field: string][] = [
    [{ access_token: 'EAAnotatoken' }, 'access_token'],
    [{ phone_number_id: '123' }, 'phone_number_id'],
    [{ phone_number_id: other.phone_number_id }, 'phone_number_id'],
    [{ waba_id: '123' }, 'waba_id'],
    [{ waba_id: sibling.waba_id }, 'waba_id'],
    [{ access_token: other.access_token }, 'phone_number_id'],
  ];
  for (const [more, field] of wrong) {
    isRefused(t, await connect(customer.live, own, more), field);
    await nothingConnected(t, customer, JSON.stringify(more));
  }
});

test('a number of another account of the same owner is no number of this one', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  // The token reaches the number, but the list of the account does not have it.
  await fault(stack, { call: `GET ${business.waba_id}/phone_numbers`, answer: 'empty' });
  const answer = await connect(customer.live, business);
  isRefused(t, answer, 'phone_number_id', /does not belong/);
  await nothingConnected(t, customer, 'not in the list');
});

test('a number is connected to one account, also when two try at once', async (t) => {
  const [first, second] = [await stack.customer(), await stack.customer()];
  const business = await aBusiness(stack);
  t.is((await connect(first.live, business)).status, 200);
  isRefused(t, await connect(second.live, business), 'phone_number_id', /another account/);
  await nothingConnected(t, second, 'taken');
  const contested = await aBusiness(stack);
  const answers = await Promise.all([first, second].map(({ live }) => connect(live, contested)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  const holder = await stack.api.connections.holder(contested.phone_number_id);
  const winner = answers[0]?.status === 200 ? first : second;
  t.is(holder, winner.accountId);
});

test('one account connects one number: the newer takes the place of the older', async (t) => {
  const customer = await stack.customer();
  const [older, newer] = [await aBusiness(stack), await aBusiness(stack)];
  await connect(customer.live, older);
  t.is((await connect(customer.live, newer)).status, 200);
  t.is((await detailsOf(customer))?.phone_number_id, newer.phone_number_id);
  t.is(await stack.api.connections.holder(older.phone_number_id), undefined);
  const both = await Promise.all([older, newer].map((one) => connect(customer.live, one)));
  t.deepEqual(
    both.map(({ status }) => status),
    [200, 200],
  );
  t.not(await detailsOf(customer), null);
});

test('a failed reconnect leaves the connection as it was', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await connect(customer.live, business);
  const before = await detailsOf(customer);
  isRefused(t, await connect(customer.live, business, { access_token: 'x' }), 'access_token');
  t.deepEqual(await detailsOf(customer), before);
});

test('a test key sees the connection and cannot change it', async (t) => {
  const customer = await stack.customer();
  const business = await aBusiness(stack);
  await connect(customer.live, business);
  const before = await detailsOf(customer);
  const other = await aBusiness(stack);
  const refused = [
    await connect(customer.test, other),
    await signUp(customer.test, other, other.code),
    await customer.test.post('/v1/clients/waba/template/check', {}),
    await customer.test.post('/v1/clients/waba/template/create', {}),
    await customer.test.post('/v1/clients/waba/disconnect', {}),
  ];
  for (const answer of refused) {
    t.is(answer.status, 403, answer.text);
    t.is(answer.error.code, 'REAUTH_REQUIRED');
    t.regex(String(answer.error.message), /test key/);
  }
  t.deepEqual((await customer.test.get('/v1/clients/waba/details')).data.connection, before);
});

test('changes are limited to 30 an hour', async (t) => {
  const customer = await stack.customer();
  const call = () => customer.live.post('/v1/clients/waba/template/check', {});
  for (let made = 0; made < 30; made++) t.is((await call()).status, 404);
  const refused = await call();
  t.is(refused.status, 429, refused.text);
  t.like(refused.error, { code: 'RATE_LIMIT_EXCEEDED', limit: 30, window_seconds: 3600 });
  t.is((await customer.live.get('/v1/clients/waba/details')).status, 200);
});

test('without an app Embedded Signup is not offered', async (t) => {
  const customer = await stack.customer();
  const bare = { ...stack.api.config, whatsappAppId: '' };
  const { routes } = await import('../../api/routes.ts');
  const route = routes.find(({ path }) => path === '/v1/clients/waba/embedded-signup') as JsonRoute;
  const account = await stack.api.accounts.find(customer.accountId);
  const body = { code: 'x', waba_id: '1', phone_number_id: '1' };
  const request = { account, session: undefined, keyMode: 'live', body, requestId: 'r' };
  await t.throwsAsync(route.handle({ ...stack.api, config: bare }, request as never) as never, {
    message: /not set up/,
  });
});

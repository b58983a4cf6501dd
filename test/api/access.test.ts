// Getting in: registering, logging in and out, refreshing, passwords (spec section 4, reference 06 section 5).
import test from 'ava';
import { day, minute } from '../../lib/kernel/clock.ts';
import { createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { uniqueName } from '../support/names.ts';
import { aNumber } from '../support/phones.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const password = 'correct horse battery';

test.before(async () => {
  stack = await startStack('access', { clock, settings: { TRUSTED_PROXIES: '1' } });
});
test.after.always(() => stack?.close());

let address = 0;
/** Calls from an address of its own: what is counted by source does not meet. */
const from = () => {
  address += 1;
  const headers = { 'X-Forwarded-For': `198.51.100.${address}` };
  return (path: string, body: unknown) => stack.anybody.post(`/v1/clients/${path}`, body, headers);
};

const newcomer = () => ({
  ...{ email: `${uniqueName('New')}@Example.com`, password, name: 'Ada', phone: aNumber() },
});

const register = async (more: Record<string, unknown> = {}) => {
  const body = { ...newcomer(), ...more };
  const answer = await from()('register', body);
  return { ...body, answer };
};

const loggedIn = async () => {
  const account = await register();
  const { data } = await from()('login', { email: account.email, password });
  return { ...account, session: createClient(stack.url, String(data.session_token)), data };
};

test('an account is made, its keys are shown once, and both work', async (t) => {
  const { answer, email } = await register({ company: 'Analytical Engines', locale: 'ar' });
  t.is(answer.status, 200);
  t.like(answer.data.account, {
    ...{ email, name: 'Ada', company: 'Analytical Engines', locale: 'ar' },
    ...{ status: 'active', billing_plan: 'trial' },
  });
  const login = await from()('login', { email: ` ${email.toUpperCase()}`.trim(), password });
  const session = createClient(stack.url, String(login.data.session_token));
  const shown = await session.post('/v1/clients/signup-secret', undefined);
  const { live, test: sandbox } = shown.data.keys as { live: string; test: string };
  t.is((await createClient(stack.url, live).send(aNumber())).status, 200);
  t.is((await createClient(stack.url, sandbox).send(aNumber())).status, 200);
  t.is((await session.post('/v1/clients/signup-secret', undefined)).error.code, 'NOT_FOUND');
});

test('half a character is refused, since all halves would be one address and one password', async (t) => {
  const half = '\ud800';
  for (const wrong of [{ email: `${half}@tessera.example` }, { password: half.repeat(12) }]) {
    const { answer } = await register(wrong);
    t.is(answer.error.code, 'VALIDATION_ERROR');
    t.deepEqual(answer.error.details, [
      { field: Object.keys(wrong)[0], issue: 'must be valid Unicode' },
    ]);
  }
  t.is((await register({ password: '😀'.repeat(64) })).answer.status, 200);
});

test('the first keys go to one of many who ask at once', async (t) => {
  const { session } = await loggedIn();
  const asked = await Promise.all(
    Array.from({ length: 8 }, () => session.post('/v1/clients/signup-secret', undefined)),
  );
  t.is(asked.filter(({ status }) => status === 200).length, 1);
});

test('an address is taken however it is written', async (t) => {
  const { email } = await register();
  const again = await from()('register', { ...newcomer(), email: email.toUpperCase() });
  t.is(again.status, 409);
  t.is(again.error.code, 'EMAIL_TAKEN');
});

test('each field of register is bounded, and unknown ones are refused', async (t) => {
  const wrong: [string, unknown][] = [
    ...[undefined, '', 'nobody', `${'a'.repeat(250)}@b.co`, 7].map((value): [string, unknown] => [
      'email',
      value,
    ]),
    ...[undefined, 'short 7', 'x'.repeat(129), 12345678].map((value): [string, unknown] => [
      'password',
      value,
    ]),
    ...[undefined, '', 'n'.repeat(101)].map((value): [string, unknown] => ['name', value]),
    ...[undefined, '0123', '+1', '+10000000'].map((value): [string, unknown] => ['phone', value]),
    ['company', 'c'.repeat(121)],
    ['turnstile_token', 't'.repeat(4097)],
    ['name', 'half \ud83d'],
    ['company', 'half \ud83d'],
    ['locale', 'a-long-one'],
    ['admin', true],
  ];
  const call = from();
  for (const [field, value] of wrong) {
    const answer = await call('register', { ...newcomer(), [field]: value });
    t.is(answer.status, 400, `${field}: ${value}`);
    const details = answer.error.details as { field: string }[];
    t.deepEqual([...new Set(details.map((detail) => detail.field))], [field]);
  }
  const edge = {
    password: `${'x7 '.repeat(42)}xy`,
    name: 'n'.repeat(100),
    company: 'c'.repeat(120),
  };
  t.is((await call('register', { ...newcomer(), ...edge })).status, 200);
});

test('passwords that everybody tries first are refused', async (t) => {
  const call = from();
  const email = 'lovelace.ada@example.com';
  for (const weak of ['password', 'Password1', 'lovelace.ada1', 'Engines!99', 'tessera1']) {
    const answer = await call('register', {
      ...newcomer(),
      email,
      company: 'Engines',
      password: weak,
    });
    t.is(answer.status, 400, weak);
    t.like(answer.error.details, [{ field: 'password' }]);
  }
});

test('one source registers five times an hour', async (t) => {
  const call = from();
  for (let time = 0; time < 5; time++) t.is((await call('register', newcomer())).status, 200);
  const sixth = await call('register', newcomer());
  t.is(sixth.status, 429);
  t.like(sixth.error, { dimension: 'source_ip', limit: 5, window_seconds: 3600 });
});

test('unknown addresses and wrong passwords are answered alike', async (t) => {
  const { email } = await register();
  const known = await from()('login', { email, password: 'not this one' });
  const unknown = await from()('login', { email: 'nobody@example.com', password: 'not this one' });
  for (const answer of [known, unknown]) {
    t.is(answer.status, 401);
    t.is(answer.error.code, 'INVALID_CREDENTIALS');
  }
});

test.serial(
  'ten wrong passwords in a row lock address and source, twice as long each time',
  async (t) => {
    const { email } = await register();
    const call = from();
    const fail = async (times: number) => {
      for (let time = 0; time < times; time++) {
        t.is((await call('login', { email, password: 'wrong one' })).status, 401);
      }
    };
    const locked = async (seconds: number) => {
      const answer = await call('login', { email, password });
      t.is(answer.status, 429);
      t.like(answer.error, { code: 'RATE_LIMIT_EXCEEDED', dimension: 'login' });
      t.is(answer.headers.get('retry-after'), String(seconds));
    };
    await fail(10);
    await locked(15 * 60);
    t.is((await from()('login', { email, password })).status, 200, 'another source is not locked');
    clock.forward(15 * minute);
    await fail(10);
    await locked(30 * 60);
    clock.forward(30 * minute);
    t.is((await call('login', { email, password })).status, 200);
    await fail(9);
    t.is(
      (await call('login', { email, password })).status,
      200,
      'the row starts anew after a success',
    );
  },
);

test('a hundred guesses at once are a hundred guesses', async (t) => {
  const { email } = await register();
  const call = from();
  const guesses = await Promise.all(
    Array.from({ length: 30 }, () => call('login', { email, password: 'wrong one' })),
  );
  t.true(guesses.filter(({ status }) => status === 401).length <= 10);
});

test('a suspended account is told so only with its password', async (t) => {
  const { email, answer } = await register();
  const { id } = answer.data.account as { id: string };
  await stack.api.accounts.setStatus(id, 'suspended');
  await stack.api.revocations.announce();
  const wrong = await from()('login', { email, password: 'wrong one' });
  t.is(wrong.error.code, 'INVALID_CREDENTIALS');
  t.is((await from()('login', { email, password })).error.code, 'ACCOUNT_SUSPENDED');
});

test('a session is refreshed and ended through the API', async (t) => {
  const { data, session } = await loggedIn();
  const refresh = (token: unknown) =>
    createClient(stack.url, String(token)).post('/v1/clients/session/refresh', undefined);
  const next = await refresh(data.refresh_token);
  t.is(next.status, 200);
  t.is(next.data.expires_in, 900);
  const renewed = createClient(stack.url, String(next.data.session_token));
  t.is((await renewed.post('/v1/clients/logout', undefined)).status, 200);
  for (const client of [session, renewed]) {
    t.is((await client.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  }
  t.is((await refresh(next.data.refresh_token)).error.code, 'INVALID_SESSION');
  t.is((await refresh('rt_nonsense')).error.code, 'INVALID_SESSION');
});

test('a refresh ends the access tokens that came before it', async (t) => {
  const { data, session } = await loggedIn();
  t.is((await session.get('/v1/clients/me')).status, 200, 'it is remembered by now');
  const refresh = (token: unknown) =>
    createClient(stack.url, String(token)).post('/v1/clients/session/refresh', undefined);
  const next = await refresh(data.refresh_token);
  t.is((await session.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  const renewed = createClient(stack.url, String(next.data.session_token));
  t.is((await renewed.get('/v1/clients/me')).status, 200);
  // A repeat after a lost answer opens a pair beside the present one, which goes on.
  const again = await refresh(data.refresh_token);
  t.is((await renewed.get('/v1/clients/me')).status, 200);
  const beside = createClient(stack.url, String(again.data.session_token));
  t.is((await beside.get('/v1/clients/me')).status, 200);
});

test('a changed password ends the other sessions and keeps the acting one', async (t) => {
  const { email, session } = await loggedIn();
  const other = await from()('login', { email, password });
  const change = (current: string, wanted: string) =>
    session.post('/v1/clients/password', { current_password: current, new_password: wanted });
  t.is((await change('not this one', 'a fresh long one')).error.code, 'INVALID_CREDENTIALS');
  t.like((await change(password, 'password')).error.details, [{ field: 'new_password' }]);
  t.is((await change(password, 'a fresh long one')).status, 200);
  t.is((await session.get('/v1/clients/me')).status, 200);
  const ended = createClient(stack.url, String(other.data.session_token));
  t.is((await ended.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  t.is((await from()('login', { email, password })).status, 401);
  t.is((await from()('login', { email, password: 'a fresh long one' })).status, 200);
});

test('a forgotten password is replaced with a code to the owner’s phone', async (t) => {
  const phone = stack.phone();
  const { email } = await register({ phone: phone.number });
  const { data } = await from()('login', { email, password });
  const asked = await from()('password/forgot', { email });
  t.deepEqual(asked.data, { sent: true });
  const code = await eventually(t, async () => {
    const [newest] = await phone.messages();
    return newest?.code ?? undefined;
  });
  const reset = (given: string, to = 'a fresh long one') =>
    from()('password/reset', { email, code: given, new_password: to });
  const wrong = String((Number(code) + 1) % 100_000_000).padStart(8, '0');
  t.is((await reset(wrong)).error.code, 'INVALID_CODE');
  t.like((await reset(code, 'password1')).error.details, [{ field: 'new_password' }]);
  t.is((await reset(code)).status, 200);
  t.is((await reset(code, 'another long one')).error.code, 'INVALID_CODE', 'a code works once');
  const session = createClient(stack.url, String(data.session_token));
  t.is((await session.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  t.is((await from()('login', { email, password: 'a fresh long one' })).status, 200);
});

test('who has an account is not told to those who forgot', async (t) => {
  const email = 'nobody.at.all@example.com';
  const { status, data } = await from()('password/forgot', { email });
  t.deepEqual({ status, data }, { status: 200, data: { sent: true } });
  const reset = await from()('password/reset', { email, code: '12345678', new_password: password });
  t.is(reset.error.code, 'INVALID_CODE');
});

test('a session ends a month after its login', async (t) => {
  const { data } = await loggedIn();
  const row = await stack.api.db('sessions').orderBy('id', 'desc').first();
  t.is(Number(row.ends_at) - Number(row.created_at), 30 * day);
  t.is(data.expires_in, 900);
});

// The bot check at registration, where it is configured: a token of a person, once.
import test from 'ava';
import sinon from 'sinon';
import { uniqueName } from '../support/names.ts';
import { aNumber } from '../support/phones.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const passes = '1x0000000000000000000000000000000AA';

const start = async (name: string, more: Record<string, string> = {}) => {
  const settings = { TRUSTED_PROXIES: '1', TURNSTILE_SECRET: passes, ...more };
  return startStack(name, { workers: [], settings });
};

test.before(async () => {
  stack = await start('turnstile', { TURNSTILE_BASE_URL: 'http://127.0.0.1:9' });
});
test.after.always(() => stack?.close());

let source = 0;
const register = (on: Stack, token: string | undefined) => {
  source += 1;
  const body = {
    ...{ email: `${uniqueName('bot')}@example.com`, password: 'one of many words' },
    ...{
      name: 'Ada',
      phone: aNumber(),
      ...(token === undefined ? {} : { turnstile_token: token }),
    },
  };
  return on.anybody.post('/v1/clients/register', body, {
    'X-Forwarded-For': `203.0.113.${source}`,
  });
};

test('a provider that cannot be reached is 503, and no account is made', async (t) => {
  const answer = await register(stack, 'token');
  t.is(answer.status, 503);
  t.is(answer.error.code, 'SERVICE_UNAVAILABLE');
  t.regex(String(answer.error.message), /bot check/);
  t.truthy(answer.headers.get('retry-after'));
  const rows = await stack.api.db('accounts').where('email', 'like', 'bot%');
  t.is(rows.length, 0);
});

test('a token opens one registration; a missing, unknown or used one is named', async (t) => {
  const { createSimulators } = await import('../simulators/server.ts');
  const { shared } = await import('../support/settings.ts');
  const sim = await createSimulators({ port: 0, apiUrl: 'http://127.0.0.1:9', ...shared });
  const open = await start('turnstile2', { TURNSTILE_BASE_URL: sim.url });
  try {
    const issued = await fetch(`${sim.url}/turnstile/tokens`, { method: 'POST' });
    const { token } = (await issued.json()) as { token: string };
    for (const wrong of [undefined, 'made up', '']) {
      const answer = await register(open, wrong);
      t.is(answer.status, 400);
      t.like(answer.error.details, [{ field: 'turnstile_token' }]);
    }
    t.is((await register(open, token)).status, 200);
    t.like((await register(open, token)).error.details, [{ field: 'turnstile_token' }]);
  } finally {
    await open.close();
    await sim.close();
  }
});

test('a stranger past the limit of an address needs a token; a known source never does', async (t) => {
  const { createSimulators } = await import('../simulators/server.ts');
  const { shared } = await import('../support/settings.ts');
  const sim = await createSimulators({ port: 0, apiUrl: 'http://127.0.0.1:9', ...shared });
  const open = await start('turnstile3', { TURNSTILE_BASE_URL: sim.url });
  const token = async (): Promise<string> => {
    const issued = await fetch(`${sim.url}/turnstile/tokens`, { method: 'POST' });
    return ((await issued.json()) as { token: string }).token;
  };
  const call = (path: string, body: object, from: string) =>
    open.anybody.post(`/v1/clients/${path}`, body, { 'X-Forwarded-For': from });
  try {
    const email = `${uniqueName('owner')}@example.com`;
    const password = 'one of many words';
    const about = {
      email,
      password,
      name: 'Ada',
      phone: aNumber(),
      turnstile_token: await token(),
    };
    t.is((await call('register', about, '192.0.2.1')).status, 200);
    const checked = sinon.stub(open.api.passwords, 'check').resolves({
      matches: false,
      renewed: undefined,
    });
    for (let stranger = 0; stranger < 10; stranger++) {
      for (let time = 0; time < 5; time++) {
        const answer = await call('login', { email, password }, `192.0.2.${stranger + 10}`);
        t.is(answer.error.code, 'INVALID_CREDENTIALS');
      }
    }
    checked.restore();
    const refused = await call('login', { email, password }, '192.0.2.99');
    t.is(refused.status, 403);
    t.is(refused.error.code, 'TURNSTILE_REQUIRED');
    const made = { email, password, turnstile_token: 'made up' };
    t.like((await call('login', made, '192.0.2.99')).error.details, [{ field: 'turnstile_token' }]);
    t.is((await call('login', { email, password }, '192.0.2.1')).status, 200, 'the owner at home');
    const passed = { email, password, turnstile_token: await token() };
    t.is((await call('login', passed, '192.0.2.99')).status, 200, 'and elsewhere, with a token');
    // Guesses at reset codes: the same way.
    const guess = { email, code: '12345678', new_password: 'another long one' };
    for (let time = 0; time < 5; time++) {
      t.is((await call('password/reset', guess, `192.0.2.${time + 150}`)).status, 400);
    }
    t.is((await call('password/reset', guess, '192.0.2.160')).error.code, 'TURNSTILE_REQUIRED');
    const withToken = { ...guess, turnstile_token: await token() };
    t.is((await call('password/reset', withToken, '192.0.2.160')).error.code, 'INVALID_CODE');
    t.is((await call('password/reset', guess, '192.0.2.1')).error.code, 'INVALID_CODE');
    // And codes asked for.
    for (let time = 0; time < 5; time++) {
      t.is((await call('password/forgot', { email }, `192.0.2.${time + 170}`)).status, 200);
    }
    t.is((await call('password/forgot', { email }, '192.0.2.180')).status, 403);
    const asked = { email, turnstile_token: await token() };
    t.is((await call('password/forgot', asked, '192.0.2.180')).status, 200);
  } finally {
    await open.close();
    await sim.close();
  }
});

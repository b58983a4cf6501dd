// The bot check at registration, where it is configured: a token of a person, once.
import test from 'ava';
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

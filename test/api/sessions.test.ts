// Sessions at the door: which tokens open what, rotation, and how an end holds everywhere.
import test from 'ava';
import { openSession, refreshSession } from '../../lib/sessions/open.ts';
import { createClient } from '../support/client.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('sessions', { workers: [] });
});
test.after.always(() => stack?.close());

const open = async () => {
  const { accountId } = await stack.customer();
  const account = await stack.api.accounts.find(accountId);
  if (!account) throw new Error('no account');
  const visitor = { ip: '192.0.2.1', userAgent: 'tests', source: 'tests' };
  return openSession(stack.api, { account, visitor, mfa: false });
};

const codeFor = async (token: string): Promise<unknown> =>
  (await createClient(stack.url, token).get('/v1/clients/me')).error.code;

test('an account is reached by session and by key', async (t) => {
  const customer = await stack.customer();
  for (const client of [customer.session, customer.live, customer.test]) {
    const answer = await client.get('/v1/clients/me');
    t.is(answer.status, 200);
    t.like(answer.data, { id: customer.accountId, email: customer.email, mfa_enabled: false });
  }
  t.is((await stack.anybody.get('/v1/clients/me')).error.code, 'INVALID_API_KEY');
});

test('a refresh token opens nothing, an access token refreshes nothing', async (t) => {
  const { tokens } = await open();
  t.is(await codeFor(tokens.refresh), 'INVALID_API_KEY');
  await t.throwsAsync(refreshSession(stack.api, tokens.access), { message: /session/ });
});

test('a used refresh token ends the session, whoever holds the newer one', async (t) => {
  const first = await open();
  const second = await refreshSession(stack.api, first.tokens.refresh);
  const third = await refreshSession(stack.api, second.tokens.refresh);
  t.is(await codeFor(third.tokens.access), undefined);
  await t.throwsAsync(refreshSession(stack.api, first.tokens.refresh), { message: /session/ });
  t.is(await codeFor(third.tokens.access), 'INVALID_SESSION');
  await t.throwsAsync(refreshSession(stack.api, third.tokens.refresh), { message: /session/ });
});

test('two honest refreshes at once leave the session open', async (t) => {
  const { tokens } = await open();
  const pairs = await Promise.all([
    refreshSession(stack.api, tokens.refresh),
    refreshSession(stack.api, tokens.refresh),
  ]);
  for (const pair of pairs) t.is(await codeFor(pair.tokens.access), undefined);
  // From here on each refresh ends the access tokens that came before it, those of the other pair included.
  for (const pair of pairs) t.truthy(await refreshSession(stack.api, pair.tokens.refresh));
});

// What operators may do to an account, and how soon it holds.
import test from 'ava';
import { forceLogout, reinstateAccount, suspendAccount } from '../../lib/security/suspend.ts';
import { listenForEvents } from '../support/events.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('suspend', { workers: [] });
});
test.after.always(() => stack?.close());

const given = (accountId: string) => ({ accountId, reason: 'chargebacks', requestId: 'ops-1' });

test('a suspended account is refused with keys and sessions, told once, and taken back', async (t) => {
  const { accountId, live, session } = await stack.customer();
  const events = await listenForEvents(stack, 'account.suspended');
  await suspendAccount(stack.api, given(accountId));
  await suspendAccount(stack.api, given(accountId));
  t.is((await live.get('/v1/clients/me')).error.code, 'ACCOUNT_SUSPENDED');
  t.is((await session.get('/v1/clients/me')).status, 401);
  await eventually(t, () => events.heard[0]);
  t.is(events.heard.length, 1);
  t.like(events.heard[0], { type: 'account.suspended', data: { reason: 'chargebacks' } });
  await events.close();
  await reinstateAccount(stack.api, accountId);
  t.is((await live.get('/v1/clients/me')).status, 200);
  t.is((await session.get('/v1/clients/me')).error.code, 'INVALID_SESSION', 'sessions stay ended');
});

test('a forced logout ends every session and leaves the keys', async (t) => {
  const { accountId, live, session } = await stack.customer();
  t.is(await forceLogout(stack.api, accountId), 1);
  t.is((await session.get('/v1/clients/me')).error.code, 'INVALID_SESSION');
  t.is((await live.get('/v1/clients/me')).status, 200);
});

test('an unknown account is not found', async (t) => {
  const nobody = '01a1fbf0-dc97-7d74-9dbf-33d7e8e4d656';
  await t.throwsAsync(suspendAccount(stack.api, given(nobody)), { message: /no such/ });
  await t.throwsAsync(reinstateAccount(stack.api, nobody), { message: /no such/ });
});

// Every endpoint with every kind of credential: whom it lets in follows from its route's `auth`, and from nothing
// else. A new route is covered as it is added to the table.
import test from 'ava';
import type { Auth, CsvRoute, JsonRoute } from '../../api/route.ts';
import { routes } from '../../api/routes.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { openSession } from '../../lib/sessions/open.ts';
import { endKey } from '../support/acts.ts';
import { appCode } from '../support/authenticator.ts';
import { createClient } from '../support/client.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

const endpoints = routes.filter((route): route is JsonRoute | CsvRoute => route.kind !== 'raw');

const kinds = [
  ...['none', 'nonsense', 'live key', 'test key', 'session', 'refresh token', 'mfa token'],
  ...['revoked key', 'ended session', 'suspended key', 'suspended session'],
] as const;
type Kind = string;

/** Which credentials each kind of route lets in; every other is 401. */
const welcome: Record<Auth, readonly Kind[]> = {
  none: kinds,
  key: ['live key', 'test key'],
  session: ['session'],
  account: ['live key', 'test key', 'session'],
  refresh: ['refresh token'],
  mfa: ['mfa token'],
};

test.before(async () => {
  stack = await startStack('credentials', { workers: [], settings: { TRUSTED_PROXIES: '1' } });
});
test.after.always(() => stack?.close());

const visitor = { ip: '127.0.0.1', userAgent: 'tests', source: 'tests' };

const sessionOf = async (accountId: string) => {
  const account = await stack.api.accounts.find(accountId);
  if (!account) throw new Error('no account');
  return (await openSession(stack.api, { account, visitor, mfa: false })).tokens;
};

/** An account whose login asks for a second factor, so that a token of that kind exists. */
const mfaToken = async (): Promise<string> => {
  const { session, email, password } = await stack.customer();
  const enrolled = await session.post('/v1/clients/security/mfa/enroll', undefined);
  const code = appCode(String(enrolled.data.secret), Date.now());
  await session.post('/v1/clients/security/mfa/confirm', { code });
  const login = await stack.anybody.post('/v1/clients/login', { email, password });
  return String(login.data.mfa_token);
};

/** A credential of each kind, fresh: a call may use it up. */
const makers: Record<Kind, () => Promise<string | undefined>> = {
  none: async () => undefined,
  nonsense: async () => 'sk_live_tsr_nonsense',
  'live key': async () => (await stack.customer()).live.key,
  'test key': async () => (await stack.customer()).test.key,
  session: async () => (await stack.customer()).session.key,
  'refresh token': async () => (await sessionOf((await stack.customer()).accountId)).refresh,
  'mfa token': mfaToken,
  'revoked key': async () => {
    const { accountId, live, liveKeyId } = await stack.customer();
    await endKey(stack.api.keys, accountId, liveKeyId, Date.now());
    await stack.api.revocations.announce();
    return live.key;
  },
  'ended session': async () => {
    const { accountId, session } = await stack.customer();
    await stack.api.sessions.revokeAll(accountId, Date.now(), { reason: 'test' });
    await stack.api.revocations.announce();
    return session.key;
  },
  'suspended key': async () => (await suspended()).live.key,
  'suspended session': async () => (await suspended()).session.key,
};

const suspended = async () => {
  const customer = await stack.customer();
  await stack.api.accounts.setStatus(customer.accountId, 'suspended');
  await stack.api.revocations.announce();
  return customer;
};

const pathOf = ({ path }: JsonRoute | CsvRoute): string =>
  path.replace('{message_id}', `otp_${newId()}`).replace(/\{\w+\}/g, newId());

/** The answer to a call with nothing in its body: whoever is let in hears 400, 404 or better. */
const call = async (route: JsonRoute | CsvRoute, token: string | undefined, source: number) => {
  const client = createClient(stack.url, token);
  const headers = { 'X-Forwarded-For': `203.0.113.${source % 250}` };
  const body = route.kind === 'json' && route.body ? { body: {} } : {};
  return client.call(route.method, pathOf(route), { ...body, headers });
};

for (const kind of kinds) {
  test(`${kind}: let in where the route says so, 401 everywhere else`, async (t) => {
    let token = await makers[kind]?.();
    for (const [index, route] of endpoints.entries()) {
      const where = `${route.method} ${route.path} with ${kind}`;
      const answer = await call(route, token, index);
      if (welcome[route.auth].includes(kind)) {
        t.not(answer.status, 401, `${where}: ${answer.text}`);
        // It may have been used up, or have ended itself.
        if (['/logout', '/refresh'].some((end) => route.path.endsWith(end))) {
          token = await makers[kind]?.();
        }
      } else {
        t.is(answer.status, 401, where);
        const known = ['INVALID_API_KEY', 'INVALID_SESSION', 'ACCOUNT_SUSPENDED'];
        t.true(known.includes(String(answer.error.code)), `${where}: ${answer.error.code}`);
      }
      if (kind.startsWith('suspended') && answer.status === 401) {
        const takes = kind.endsWith('key') ? ['key', 'account'] : ['session', 'account'];
        const expected = takes.includes(route.auth) ? 'ACCOUNT_SUSPENDED' : answer.error.code;
        t.is(answer.error.code, expected, where);
      }
    }
  });
}

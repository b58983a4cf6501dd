// Who gets in: nobody without the token, browsers by a login, writes only from our own page, and the public port has none of it.
import test from 'ava';
import { opsRoutes } from '../../api/ops/routes.ts';
import { csrfOf, makeSession, readSession, sessionMs } from '../../api/ops/session.ts';
import { routes } from '../../api/routes.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { opsToken } from '../support/settings.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;

test.before(async () => {
  stack = await startStack('opsaccess', { workers: [] });
  ops = await startOps(stack);
});

test.after.always(async () => {
  await ops?.close();
  await stack?.close();
});

const filled = (path: string): string => path.replace(/\{\w+\}/g, 'x');
const form = (fields: Record<string, string>): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
});

const logIn = async (): Promise<string> => {
  const answer = await ops.call('/ops/login', form({ actor: 'Ada Ops', token: opsToken }));
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
};

test('without the token everything is 401: every route, unknown paths, every method, wrong tokens', async (t) => {
  const known = opsRoutes.map(({ method, path }) => ({ method, path: filled(path) }));
  const others = ['/', '/ops', '/metrics', '/live', '/nothing/here', '/ops/api/queues/../session'];
  const all = [
    ...known,
    ...others.map((path) => ({ method: 'GET', path })),
    ...['POST', 'PUT', 'DELETE', 'OPTIONS'].map((method) => ({ method, path: '/ops/api/session' })),
    { method: 'POST', path: '/ops/logout' },
  ];
  const wrong = [
    {},
    ...['Bearer ', 'Bearer x', `Bearer ${opsToken}x`, `Basic ${opsToken}`].map((authorization) => ({
      authorization,
    })),
  ];
  for (const { method, path } of all) {
    for (const headers of wrong) {
      const answer = await ops.call(path, { method, headers });
      t.is(answer.status, 401, `${method} ${path}`);
      t.is(answer.error.code, 'INVALID_TOKEN', `${method} ${path}`);
      t.is(answer.headers.get('www-authenticate'), 'Bearer');
    }
  }
});

test('with the token unknown paths are 404, and the caller is named', async (t) => {
  t.is((await ops.get('/nothing/here')).status, 404);
  const answer = await ops.get('/ops/api/session');
  t.like(answer.data, { actor: 'Tester', csrf: null });
});

test('the public port serves none of it', async (t) => {
  const publicPaths = new Set(routes.map(({ path }) => path));
  for (const { method, path } of opsRoutes) {
    t.false(publicPaths.has(path), path);
    const answer = await fetch(stack.url + filled(path), {
      method,
      headers: { authorization: `Bearer ${opsToken}` },
    });
    t.is(answer.status, 404, path);
  }
  for (const path of ['/ops', '/ops/login', '/metrics']) {
    t.is((await fetch(stack.url + path)).status, 404, path);
  }
});

test('a browser gets the form with its 401, logs in, and holds a cookie no script can read', async (t) => {
  const page = await ops.call('/ops', { headers: { accept: 'text/html' } });
  t.is(page.status, 401);
  t.regex(page.text, /<form method="post" action="\/ops\/login">/);
  const wrong = await ops.call('/ops/login', form({ actor: 'Ada', token: 'wrong' }));
  t.is(wrong.status, 401);
  t.is(wrong.headers.get('set-cookie'), null);
  t.is((await ops.call('/ops/login', form({ actor: '<b>', token: opsToken }))).status, 401);

  const right = await ops.call('/ops/login', form({ actor: 'Ada Ops', token: opsToken }));
  t.is(right.status, 303);
  t.is(right.headers.get('location'), '/ops');
  const cookie = right.headers.get('set-cookie') ?? '';
  t.regex(cookie, /httponly/i);
  t.regex(cookie, /samesite=strict/i);
  t.false(cookie.includes(opsToken));

  const session = await ops.call('/ops/api/session', { headers: { cookie: await logIn() } });
  t.is(session.data.actor, 'Ada Ops');
  t.is(session.data.csrf.length, 64);
  const zoe = await ops.call('/ops/login', form({ actor: 'Zoë Müller', token: opsToken }));
  t.is(zoe.status, 303);
  const hers = zoe.headers.get('set-cookie')?.split(';')[0] ?? '';
  const named = await ops.call('/ops/api/session', { headers: { cookie: hers } });
  t.is(named.data.actor, 'Zoë Müller');
});

test('a login leads back to the page that was asked for, and never out of the console', async (t) => {
  const asked = await ops.call('/ops/accounts?before=1&x=%22%3E', {
    headers: { accept: 'text/html' },
  });
  t.true(asked.text.includes('name="to" value="/ops/accounts?before=1&#38;x=%22%3E"'));
  const leadsTo = async (to: string) => {
    const answer = await ops.call('/ops/login', form({ actor: 'Ada', token: opsToken, to }));
    return answer.headers.get('location');
  };
  t.is(await leadsTo('/ops/dead/webhook.dispatch?page=2'), '/ops/dead/webhook.dispatch?page=2');
  const elsewhere = [
    ...['//evil.example/ops', 'https://evil.example/ops', '/ops/..//evil.example', 'javascript:x'],
    ...['/ops\\..\\..\\evil', '/opsx', '/ops/api/queues', '/ops/logout', '/metrics', 'ops', ''],
    ...['/ops/\r\nSet-Cookie: a=b/../../..', '/\t/evil.example'],
  ];
  for (const to of elsewhere) t.is(await leadsTo(to), '/ops', to);
  // A token mistyped costs neither the way nor the name.
  const wrong = form({ actor: '"Ada', token: 'no', to: '/ops/audit' });
  const { text } = await ops.call('/ops/login', wrong);
  t.true(text.includes('value="/ops/audit"') && text.includes('value="&#34;Ada"'));
});

test('behind a proxy that is believed the cookie is Secure and the name is the proxy’s', async (t) => {
  const behind = await startOps(stack, { trustedProxies: 1 });
  t.teardown(behind.close);
  const tls = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'ops.example' };
  const login = (to: Ops, headers: Record<string, string>) => {
    const sent = form({ actor: 'Ada', token: opsToken });
    return to.call('/ops/login', { ...sent, headers: { ...sent.headers, ...headers } });
  };
  const given = (await login(behind, tls)).headers.get('set-cookie') ?? '';
  t.regex(given, /; secure/i);
  // Without a proxy nobody's word is believed, and over plain HTTP the cookie is kept.
  t.notRegex((await login(ops, tls)).headers.get('set-cookie') ?? '', /; secure/i);
  t.notRegex((await login(behind, {})).headers.get('set-cookie') ?? '', /; secure/i);

  const [cookie = ''] = given.split(';');
  const own = { headers: { ...tls, cookie } };
  const { csrf } = (await behind.call('/ops/api/session', own)).data;
  const write = (to: Ops, more: Record<string, string>) =>
    to.call('/ops/channels/pause', {
      method: 'POST',
      headers: { cookie, 'x-csrf-token': csrf, origin: 'https://ops.example', ...more },
    });
  t.is((await write(behind, tls)).status, 303);
  t.is((await write(behind, { ...tls, origin: 'https://evil.example' })).status, 403);
  // The name under which a listener that believes no proxy reads it.
  const bare = { cookie: cookie.replace('__Host-', '') };
  const unnamed = await ops.call('/ops/api/session', { headers: bare });
  const refused = await write(ops, { ...tls, ...bare, 'x-csrf-token': unnamed.data.csrf });
  t.is(refused.status, 403);
  t.true(refused.error.message?.includes('a proxy in front must pass Host on'));
});

test('people get a page where there is none, programs the envelope', async (t) => {
  const held = { authorization: `Bearer ${opsToken}` };
  const page = await ops.call('/ops/nothing', { headers: { ...held, accept: 'text/html' } });
  t.is(page.status, 404);
  t.true(page.text.includes('There is nothing at this address'));
  t.is((await ops.get('/ops/nothing')).error.code, 'NOT_FOUND');
  t.is((await ops.get('/ops/api/nothing')).error.code, 'NOT_FOUND');
  t.is((await ops.get('/')).headers.get('location'), '/ops');
});

test('a write with the cookie alone, or from elsewhere, is refused', async (t) => {
  const cookie = await logIn();
  const { csrf } = (await ops.call('/ops/api/session', { headers: { cookie } })).data;
  const write = (headers: Record<string, string>) =>
    ops.call('/ops/logout', { method: 'POST', headers: { cookie, ...headers } });
  t.is((await write({})).status, 403);
  t.is((await write({ 'x-csrf-token': 'x'.repeat(64) })).status, 403);
  t.is((await write({ 'x-csrf-token': csrf, origin: 'https://evil.example' })).status, 403);
  const out = await write({ 'x-csrf-token': csrf, origin: ops.url });
  t.is(out.status, 303);
  t.regex(out.headers.get('set-cookie') ?? '', /tessera_ops=;/);
});

test('a session is what was signed, and ends by itself or with the token', (t) => {
  const equal = (left: string, right: string) => left === right;
  const cookie = makeSession(opsToken, 'Ada', 1_000);
  t.deepEqual(readSession(opsToken, cookie, { now: 1_000, equal }), {
    actor: 'Ada',
    until: 1_000 + sessionMs,
  });
  t.is(readSession(opsToken, cookie, { now: 1_000 + sessionMs, equal }), undefined);
  t.is(readSession('another token', cookie, { now: 1_000, equal }), undefined);
  const [actor, until, signature] = cookie.split('.');
  for (const forged of [
    `${actor}.${Number(until) + 1}.${signature}`,
    `Qm9i.${until}.${signature}`,
    '',
    '..',
  ]) {
    t.is(readSession(opsToken, forged, { now: 1_000, equal }), undefined);
  }
  t.not(csrfOf(opsToken, cookie), csrfOf(opsToken, makeSession(opsToken, 'Ada', 2_000)));
});

test('the processes are there with what they do', async (t) => {
  const { items } = (await ops.get('/ops/api/processes')).data;
  t.deepEqual([...new Set(items.map(({ name }: { name: string }) => name))].sort(), [
    'api',
    'ops',
    'workers',
  ]);
  for (const one of items) t.like(one, { state: 'alive', pid: process.pid });
});

test('a session that was logged out opens nothing, also at another process', async (t) => {
  const other = await startOps(stack);
  t.teardown(other.close);
  const cookie = await logIn();
  const ask = (at: Ops) => at.call('/ops/api/session', { headers: { cookie } });
  const { csrf } = (await ask(ops)).data;
  t.is((await ask(other)).status, 200);
  const headers = { cookie, 'x-csrf-token': csrf };
  const out = await ops.call('/ops/logout', { method: 'POST', headers });
  t.is(out.headers.get('clear-site-data'), '"cache", "storage"');
  t.is((await ask(ops)).status, 401);
  t.is((await ask(other)).status, 401);
});

test('over TLS cookies are bound to their host, and every answer asks for TLS', async (t) => {
  const behind = await startOps(stack, { trustedProxies: 1 });
  t.teardown(behind.close);
  const tls = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'ops.example' };
  const sent = form({ actor: 'Ada', token: opsToken });
  const given = await behind.call('/ops/login', { ...sent, headers: { ...sent.headers, ...tls } });
  t.is(given.headers.get('strict-transport-security'), 'max-age=31536000; includeSubDomains');
  const [cookie = ''] = (given.headers.get('set-cookie') ?? '').split(';');
  t.regex(cookie, /^__Host-tessera_ops=/);
  const session = (name: string, headers: Record<string, string>) =>
    behind.call('/ops/api/session', { headers: { cookie: name, ...headers } });
  t.is((await session(cookie, tls)).status, 200);
  t.is((await session(cookie.replace('__Host-', ''), tls)).status, 401);
  const { csrf } = (await session(cookie, tls)).data;
  const fields = form({ csrf });
  const headers = { ...fields.headers, ...tls, cookie };
  const said = await behind.call('/ops/switches/books', { ...fields, headers });
  const word = said.headers.get('set-cookie') ?? '';
  t.regex(word, /^__Host-tessera_said=.*; Path=\/;.*; Secure$/);
  t.is((await ops.get('/ops/api/session')).headers.get('strict-transport-security'), null);
});

test('pages load nothing from elsewhere, run no plug-in and stand in no frame', async (t) => {
  const { headers } = await ops.call('/ops', { headers: { accept: 'text/html' } });
  const policy = headers.get('content-security-policy') ?? '';
  for (const rule of ["default-src 'self'", "object-src 'none'", "base-uri 'none'"]) {
    t.true(policy.includes(rule), rule);
  }
  t.true(policy.includes("frame-ancestors 'none'") && policy.includes("form-action 'self'"));
});

test('logins of operators are in the log, with their source, and no token is', async (t) => {
  const lines: { fields: Record<string, unknown>; message: string }[] = [];
  const note = (fields: Record<string, unknown>, message: string) =>
    void lines.push({ fields, message });
  const log = { ...silentLog, info: note, warn: note };
  const logged = await startOps(stack, {}, log);
  t.teardown(logged.close);
  await logged.call('/ops/login', form({ actor: 'Ada', token: 'a wrong token' }));
  await logged.call('/ops/api/session', { headers: { authorization: 'Bearer another wrong' } });
  await logged.call('/ops/login', form({ actor: 'Ada', token: opsToken }));
  const about = lines.filter(({ message }) => message.startsWith('operator'));
  t.deepEqual(
    about.map(({ fields: { actor, by, source }, message }) => ({ message, actor, by, source })),
    [
      { message: 'operator refused', actor: undefined, by: 'form', source: '127.0.0.1' },
      { message: 'operator refused', actor: undefined, by: 'bearer', source: '127.0.0.1' },
      { message: 'operator logged in', actor: 'Ada', by: undefined, source: '127.0.0.1' },
    ],
  );
  t.notRegex(JSON.stringify(lines), /wrong|test-ops-token/);
});

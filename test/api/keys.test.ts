// API keys in their owner's hands: list, create, rotate with a grace, revoke (spec section 4).
import test from 'ava';
import { type Listening, listen } from '../../api/listen.ts';
import { type ApiApp, createApiApp } from '../../lib/app.ts';
import { hour, minute } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { ownerAct } from '../support/acts.ts';
import { type Client, createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let second: ApiApp;
let door: Listening;
const clock = createHandClock();
const path = '/v1/clients/keys';

test.before(async () => {
  stack = await startStack('keys', { clock, workers: [] });
  second = await createApiApp({ config: stack.config, log: silentLog, processName: 'api2', clock });
  door = await listen(second);
});
test.after.always(async () => {
  await door?.close();
  await second?.close();
  await stack?.close();
});

type Item = Record<string, unknown> & { id: string; name: string; status: string };

const items = async (client: Client): Promise<Item[]> =>
  (await client.get(path)).data.items as Item[];

const using = (key: unknown, url = stack.url) => createClient(url, String(key));

const works = async (key: unknown, url?: string): Promise<boolean> =>
  (await using(key, url).get('/v1/clients/me')).status === 200;

test.serial('keys are made, listed without their text, and speak for the account', async (t) => {
  const { session, accountId } = await stack.customer();
  const made = await session.post(path, { name: 'Shop', mode: 'test' });
  t.is(made.status, 200);
  t.regex(String(made.data.key), /^sk_test_tsr_[0-9A-Za-z]{38}$/);
  t.is((await session.post(path, { name: 'Live by default' })).data.mode, 'live');
  const list = await items(session);
  t.deepEqual(
    list.map(({ name, status }) => [name, status]),
    [
      ['Live by default', 'active'],
      ['Shop', 'active'],
      ['First test key', 'active'],
      ['First live key', 'active'],
    ],
  );
  t.false(JSON.stringify(list).includes(String(made.data.key)));
  t.is((await using(made.data.key).get('/v1/clients/me')).data.id, accountId);
});

test.serial('name and mode are bounded, and unknown fields refused', async (t) => {
  const { session } = await stack.customer();
  const wrong = [
    {},
    { name: '' },
    { name: 'n'.repeat(41) },
    { name: 7 },
    { name: 'half \ud83d' },
    { name: 'x', mode: 'Live' },
    { name: 'x', scope: 'all' },
  ];
  for (const body of wrong) {
    t.is((await session.post(path, body)).error.code, 'VALIDATION_ERROR', JSON.stringify(body));
  }
  t.is((await session.post(path, { name: 'n'.repeat(40) })).status, 200);
  for (const body of [{ id: 'nonsense' }, { key: 'x' }]) {
    t.is((await session.post(`${path}/rotate`, body)).error.code, 'VALIDATION_ERROR');
  }
  t.is((await session.call('DELETE', `${path}/nonsense`)).error.code, 'VALIDATION_ERROR');
});

test.serial('an account holds twenty keys of each mode, also when asked all at once', async (t) => {
  const { accountId, session } = await stack.customer();
  const { api } = stack;
  const { createKey } = await import('../../lib/keys/manage.ts');
  const made = await Promise.allSettled(
    Array.from({ length: 30 }, () =>
      createKey(api, { accountId, name: 'many', mode: 'live', act: ownerAct }),
    ),
  );
  const others = made.flatMap((one) =>
    one.status === 'rejected' && one.reason.code !== 'VALIDATION_ERROR' ? [String(one.reason)] : [],
  );
  t.deepEqual(others, []);
  t.is(made.filter(({ status }) => status === 'fulfilled').length, 19);
  const refused = await session.post(path, { name: 'one more' });
  t.like(refused.error, { code: 'VALIDATION_ERROR', details: [{ field: 'mode' }] });
  t.is((await session.post(path, { name: 'one more', mode: 'test' })).status, 200);
  t.is((await session.post(`${path}/rotate`, undefined)).status, 200, 'a rotation is no more keys');
});

test.serial(
  'a rotated key works for another day, and a second rotation leaves that as it is',
  async (t) => {
    const { accountId, live, liveKeyId, session } = await stack.customer();
    const first = live.key;
    const rotated = await live.post(`${path}/rotate`, undefined);
    t.is(rotated.data.name, 'First live key');
    const until = String(rotated.data.previous_valid_until);
    t.true(Math.abs(Date.parse(until) - clock.now() - 24 * hour) < minute);
    t.true(await works(first));
    clock.forward(hour);
    const fresh = await stack.sessionOf(accountId);
    const again = await fresh.post(`${path}/rotate`, { id: liveKeyId });
    t.is(again.data.previous_valid_until, until);
    clock.forward(23 * hour);
    t.false(await works(first));
    t.true(await works(rotated.data.key));
    t.true(await works(again.data.key));
    t.is((await using(first).post(`${path}/rotate`, undefined)).status, 401, 'nor is it revived');
    t.is((await session.get(path)).status, 401, 'that session is long over');
  },
);

test.serial(
  'a rotation names its key; a revoked, foreign or unknown one is not found',
  async (t) => {
    const [mine, theirs] = [await stack.customer(), await stack.customer()];
    const made = await mine.session.post(path, { name: 'Named' });
    const rotated = await mine.session.post(`${path}/rotate`, { id: made.data.id });
    t.is(rotated.data.previous_key_id, made.data.id);
    t.is(rotated.data.name, 'Named');
    for (const call of [
      theirs.session.post(`${path}/rotate`, { id: made.data.id }),
      theirs.session.call('DELETE', `${path}/${made.data.id}`),
    ]) {
      t.is((await call).status, 404);
    }
    t.true(await works(made.data.key));
    t.is((await mine.session.call('DELETE', `${path}/${made.data.id}`)).status, 200);
    t.is((await mine.session.call('DELETE', `${path}/${made.data.id}`)).status, 404);
    t.is((await mine.session.post(`${path}/rotate`, { id: made.data.id })).status, 404);
    const [newest, before] = await items(mine.session);
    t.deepEqual([newest?.status, before?.status], ['active', 'revoked']);
  },
);

test.serial('a revoked key is refused by every process within a second', async (t) => {
  const { session } = await stack.customer();
  const other = `http://127.0.0.1:${door.port}`;
  const { data } = await session.post(path, { name: 'Short' });
  t.true((await works(data.key)) && (await works(data.key, other)));
  await session.call('DELETE', `${path}/${data.id}`);
  const since = performance.now();
  t.false(await works(data.key));
  await eventually(t, async () => {
    const late = performance.now() - since > 1_000;
    const open = await works(data.key, other);
    if (late) t.false(open, 'asked more than a second later');
    return open ? undefined : true;
  });
});

test.serial('a test key manages test keys, and opens no way to live ones', async (t) => {
  const { test: sandbox, liveKeyId } = await stack.customer();
  t.is((await sandbox.post(path, { name: 'more', mode: 'test' })).status, 200);
  t.is((await sandbox.post(`${path}/rotate`, undefined)).data.mode, 'test');
  const refused = [
    await sandbox.post(path, { name: 'x', mode: 'live' }),
    await sandbox.post(`${path}/rotate`, { id: liveKeyId }),
    await sandbox.call('DELETE', `${path}/${liveKeyId}`),
    await sandbox.post('/v1/clients/signup-secret', undefined),
    await sandbox.call('PATCH', '/v1/clients/settings', { body: { webhook_url: null } }),
    await sandbox.call('PATCH', '/v1/clients/profile', { body: { name: 'x' } }),
    await sandbox.post('/v1/clients/webhook-secret/rotate', undefined),
  ];
  t.deepEqual(
    refused.map(({ error }) => error.code),
    Array(refused.length).fill('REAUTH_REQUIRED'),
  );
});

test.serial('the last use of a key is known to the minute', async (t) => {
  const { live, session } = await stack.customer();
  await live.get('/v1/clients/me');
  await stack.api.keyUses.flush();
  const used = (await items(session)).find(({ name }) => name === 'First live key');
  t.true(Math.abs(Date.parse(String(used?.last_used_at)) - clock.now()) < minute);
  const idle = (await items(session)).find(({ name }) => name === 'First test key');
  t.is(idle?.last_used_at, null);
});

test.serial('keys are changed by session only after a fresh login or proof', async (t) => {
  const { session } = await stack.customer();
  clock.forward(10 * minute + 1);
  const codes = [
    await session.post(path, { name: 'late' }),
    await session.post(`${path}/rotate`, undefined),
    await session.call('DELETE', `${path}/${(await items(session))[0]?.id}`),
    await session.post('/v1/clients/webhook-secret/rotate', undefined),
  ].map(({ error }) => error.code);
  t.deepEqual(codes, Array(4).fill('REAUTH_REQUIRED'));
});

// What a key, a stale session and a written id are good for: the edges of keys in their owner's hands.
import test from 'ava';
import { minute } from '../../lib/kernel/clock.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';
import { type Client, createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { holdNext } from '../support/hold.ts';
import { uniqueName } from '../support/names.ts';
import { aNumber } from '../support/phones.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const path = '/v1/clients/keys';

test.before(async () => {
  stack = await startStack('rights', { clock, workers: [] });
});
test.after.always(() => stack?.close());

test.serial('a rotated key works for its grace and leaves nothing that works longer', async (t) => {
  const { live, test: sandbox } = await stack.customer();
  const other = (await live.post(path, { name: 'Other' })).data.id;
  for (const old of [live, sandbox]) {
    const rotated = await old.post(`${path}/rotate`, undefined);
    t.is(rotated.status, 200);
    const refused = [
      await old.post(`${path}/rotate`, undefined),
      await old.post(path, { name: 'x', mode: rotated.data.mode }),
      await old.call('DELETE', `${path}/${other}`),
      await old.post('/v1/clients/signup-secret', undefined),
      await old.post('/v1/clients/webhook-secret/rotate', undefined),
      await old.call('PATCH', '/v1/clients/settings', {
        body: { webhook_url: 'https://a.example/h' },
      }),
      await old.post('/v1/clients/connect-whatsapp', { phone_number_id: '1', access_token: 'EAA' }),
      await old.post('/v1/clients/waba/embedded-signup', {
        ...{ code: 'c', waba_id: '1', phone_number_id: '1' },
      }),
      await old.post('/v1/clients/waba/template/create', undefined),
      await old.post('/v1/clients/waba/disconnect', undefined),
    ];
    for (const { error } of refused) t.is(error.code, 'REAUTH_REQUIRED');
    t.is((await old.get('/v1/clients/me')).status, 200, 'it works for its grace');
    const successor = createClient(stack.url, String(rotated.data.key));
    t.is((await successor.post(path, { name: 'x', mode: rotated.data.mode })).status, 200);
    const own = await old.call('DELETE', `${path}/${rotated.data.previous_key_id}`);
    t.is(own.status, 200, 'and may be ended with itself');
  }
});

test.serial('a key that leaked keeps nobody from finding and revoking it', async (t) => {
  const { live, session, liveKeyId } = await stack.customer();
  const use = (calls: number, call: () => Promise<{ status: number }>) =>
    Promise.all(Array.from({ length: calls }, call));
  const rotated = await use(30, () => live.post(`${path}/rotate`, { id: newId() }));
  const revoked = await use(30, () => live.call('DELETE', `${path}/${newId()}`));
  const listed = await use(130, () => live.get(path));
  for (const all of [rotated, revoked, listed]) t.true(all.some(({ status }) => status === 429));
  const { items } = (await session.get(path)).data;
  t.true((items as { id: string }[]).some(({ id }) => id === liveKeyId));
  t.is((await session.call('DELETE', `${path}/${liveKeyId}`)).status, 200);
  t.is((await live.get('/v1/clients/me')).error.code, 'INVALID_API_KEY');
});

test.serial('a key whose time is over is not found', async (t) => {
  const { accountId, session, liveKeyId } = await stack.customer();
  const expire = (at: number) =>
    stack.api
      .db('api_keys')
      .where({ id: idBytes(liveKeyId) })
      .update({ expires_at: at });
  await expire(clock.now() - 1);
  t.is((await session.call('DELETE', `${path}/${liveKeyId}`)).status, 404);
  await expire(clock.now() + minute);
  const fresh = await stack.sessionOf(accountId);
  t.is((await fresh.call('DELETE', `${path}/${liveKeyId}`)).status, 200);
});

test.serial('ids have one written form; case alone is free', async (t) => {
  const { session, liveKeyId: id } = await stack.customer();
  const bare = id.replaceAll('-', '');
  const odd = [bare, `{${id}}`, `[${id}]`, `(${id})`, id.replaceAll('-', ':'), `${id}-`, '%20'];
  for (const each of odd) {
    const name = encodeURIComponent(each);
    for (const answer of [
      await session.call('DELETE', `${path}/${name}`),
      await session.post(`${path}/rotate`, { id: each }),
    ]) {
      t.is(answer.error.code, 'VALIDATION_ERROR', each);
    }
    const ended = await session.call('DELETE', `/v1/clients/security/sessions/${name}`);
    t.is(ended.error.code, 'NOT_FOUND', each);
  }
  t.is((await session.call('DELETE', `${path}/${newId()}`)).status, 404);
  const revoked = await session.call('DELETE', `${path}/${id.toUpperCase()}`);
  t.deepEqual(revoked.data, { revoked: true, id, descendants: [], changes: [] });
});

/** A visitor who signed up and logged in; the first keys were shown to nobody yet. */
const newcomer = async () => {
  const given = { email: `${uniqueName('k')}@tessera.example`, password: 'correct horse battery' };
  await stack.anybody.post('/v1/clients/register', { ...given, name: 'A', phone: aNumber() });
  const { data } = await stack.anybody.post('/v1/clients/login', given);
  return { session: createClient(stack.url, String(data.session_token)), password: given.password };
};

test.serial(
  'the first keys are shown to a session only after a fresh login or proof',
  async (t) => {
    const { session, password } = await newcomer();
    clock.forward(10 * minute + 1);
    const stale = await session.post('/v1/clients/signup-secret', undefined);
    t.is(stale.error.code, 'REAUTH_REQUIRED');
    await session.post('/v1/clients/security/reauth', { password });
    t.is((await session.post('/v1/clients/signup-secret', undefined)).status, 200);
  },
);

test.serial('first keys that a leaked key was shown end with it', async (t) => {
  const { session } = await newcomer();
  const { id, key } = (await session.post(path, { name: 'leaked' })).data;
  const leaked = createClient(stack.url, String(key));
  const { keys } = (await leaked.post('/v1/clients/signup-secret', undefined)).data;
  const shown = Object.values(keys as Record<string, string>);
  t.is(shown.length, 2);
  const revoked = await session.call('DELETE', `${path}/${id}`);
  t.is((revoked.data.descendants as unknown[]).length, 2);
  for (const text of shown) {
    const answer = await createClient(stack.url, text).get('/v1/clients/me');
    t.is(answer.error.code, 'INVALID_API_KEY');
  }
});

test.serial('a key that leaked uses up no change that its owner makes by session', async (t) => {
  const { live, session } = await stack.customer();
  const settings = (by: Client, body: object) => by.call('PATCH', '/v1/clients/settings', { body });
  const changes: ((by: Client) => Promise<{ status: number }>)[] = [
    (by) => by.post(`${path}/rotate`, { id: newId() }),
    (by) => settings(by, { spend_cap_hourly: 5 }),
    (by) => by.post('/v1/clients/webhook-secret/rotate', undefined),
    (by) => by.call('DELETE', `/v1/clients/capacity-requests/${newId()}`),
  ];
  for (const change of changes) {
    const made = await Promise.all(Array.from({ length: 65 }, () => change(live)));
    t.true(made.some(({ status }) => status === 429));
    t.not((await change(session)).status, 429);
  }
  t.is((await session.post(path, { name: 'new' })).status, 200);
  t.is((await settings(session, { keys_manage_account: false })).status, 200);
});

test.serial('a key that is revoked while a password is hashed does not change it', async (t) => {
  const { live, session, liveKeyId, password } = await stack.customer();
  const held = holdNext(stack.api.passwords, 'hash');
  const body = { current_password: password, new_password: 'another long password' };
  const changing = live.post('/v1/clients/password', body);
  await held.reached;
  t.is((await session.call('DELETE', `${path}/${liveKeyId}`)).status, 200);
  held.release();
  t.is((await changing).error.code, 'INVALID_API_KEY');
  t.is((await session.post('/v1/clients/security/reauth', { password })).status, 200);
});

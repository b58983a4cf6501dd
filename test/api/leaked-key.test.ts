// A live key that leaked: what it made ends with it, its owner hears of what it did, and may take the right from it.
import { createHmac } from 'node:crypto';
import test from 'ava';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { minute } from '../../lib/kernel/clock.ts';
import { derivedId, idAt, idBytes, idText, newId } from '../../lib/kernel/ids.ts';
import { purgeSecurity } from '../../lib/security/purge.ts';
import { type Client, createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { type Call, idOf, listenAt, receive, typeOf } from '../support/receivers.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();
const path = '/v1/clients/keys';

test.before(async () => {
  const settings = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*' };
  stack = await startStack('leaked', { clock, settings, workers: ['webhook'] });
});
test.after.always(() => stack?.close());

type Key = { id: string; client: Client };
type Item = { id: string; made_by: string | null; status: string };

const keyOf = ({ data }: { data: Record<string, unknown> }): Key => ({
  id: String(data.id),
  client: createClient(stack.url, String(data.key)),
});

const make = async (by: Client): Promise<Key> => keyOf(await by.post(path, { name: 'made' }));

const works = async ({ client }: Key): Promise<boolean> =>
  (await client.get('/v1/clients/me')).status === 200;

const idsOf = (items: unknown): string[] => (items as { id: string }[]).map(({ id }) => id);

const logOf = async (session: Client) =>
  (await session.get('/v1/clients/security/log?limit=100')).data.items as {
    action: string;
    by: string;
    credential_id: string | null;
    subject_id: string | null;
    ip: string | null;
    changes: { setting: string; from: string | null; to: string | null }[];
  }[];

test.serial(
  'revoking a key ends what it made, by creating and by rotating, at every remove',
  async (t) => {
    const { live, liveKeyId, session } = await stack.customer();
    const owners = await make(session);
    const first = await make(live);
    const second = await make(first.client);
    const rotated = keyOf(await live.post(`${path}/rotate`, undefined));
    const third = await make(rotated.client);
    const listed = (await session.get(path)).data.items as Item[];
    const madeBy = new Map(listed.map(({ id, made_by }) => [id, made_by]));
    t.is(madeBy.get(first.id), liveKeyId);
    t.is(madeBy.get(second.id), first.id);
    t.is(madeBy.get(rotated.id), liveKeyId, 'a key that rotates itself made its successor');
    t.is(madeBy.get(owners.id), null);

    const revoked = await session.call('DELETE', `${path}/${liveKeyId}`);
    t.is(revoked.status, 200, revoked.text);
    const made = [first, second, rotated, third];
    t.deepEqual(idsOf(revoked.data.descendants).toSorted(), made.map(({ id }) => id).toSorted());
    for (const key of made) t.false(await works(key));
    t.true(await works(owners), 'what the owner made stays');
    const acts = revoked.data.changes as { action: string; key_id: string; subject_id: string }[];
    t.deepEqual(
      acts.map(({ action, key_id, subject_id }) => [action, key_id, subject_id]).toReversed(),
      [
        ['key_created', liveKeyId, first.id],
        ['key_created', first.id, second.id],
        ['key_created', liveKeyId, rotated.id],
        ['key_created', rotated.id, third.id],
      ],
    );
  },
);

test.serial('keep_descendants leaves them, and they may be ended with the key later', async (t) => {
  const { live, liveKeyId, session } = await stack.customer();
  const made = await make(live);
  const kept = await session.call('DELETE', `${path}/${liveKeyId}?keep_descendants=true`);
  t.deepEqual(kept.data.descendants, []);
  t.true(await works(made));
  const again = await session.call('DELETE', `${path}/${liveKeyId}`);
  t.deepEqual(idsOf(again.data.descendants), [made.id], 'the key ended, what it made had not');
  t.false(await works(made));
  t.is((await session.call('DELETE', `${path}/${liveKeyId}`)).status, 404);
  const wrong = await session.call('DELETE', `${path}/${liveKeyId}?keep_descendants=perhaps`);
  t.is(wrong.error.code, 'VALIDATION_ERROR');
});

test.serial('a leaked key does not escape by ending itself or the key that made it', async (t) => {
  const { live, liveKeyId, session } = await stack.customer();
  const made = await make(live);
  const ended = await made.client.call('DELETE', `${path}/${liveKeyId}`);
  t.deepEqual(
    ended.data.descendants,
    [],
    'the key that makes the call stays: it may be the successor',
  );
  t.true(await works(made));
  const byOwner = await session.call('DELETE', `${path}/${liveKeyId}`);
  t.deepEqual(idsOf(byOwner.data.descendants), [made.id]);
  t.false(await works(made));
});

test.serial('a key that is revoked while it makes another leaves none behind', async (t) => {
  for (let round = 0; round < 5; round++) {
    const { live, liveKeyId, session } = await stack.customer();
    const [made] = await Promise.all([
      live.post(path, { name: 'late' }),
      session.call('DELETE', `${path}/${liveKeyId}`),
    ]);
    if (made.status !== 200) t.is(made.error.code, 'INVALID_API_KEY');
    else t.false(await works(keyOf(made)));
  }
});

test.serial('keys_manage_account false: keys send and read, and nothing more', async (t) => {
  const { live, liveKeyId, session } = await stack.customer();
  const set = (client: Client, value: boolean) =>
    client.call('PATCH', '/v1/clients/settings', { body: { keys_manage_account: value } });
  t.is((await set(live, false)).error.code, 'REAUTH_REQUIRED', 'by session alone');
  t.is((await set(session, false)).data.keys_manage_account, false);
  const refused = [
    await live.post(path, { name: 'x' }),
    await live.post(`${path}/rotate`, undefined),
    await live.call('DELETE', `${path}/${liveKeyId}`),
    await set(live, true),
    await live.call('PATCH', '/v1/clients/settings', { body: { spend_cap_hourly: null } }),
    await live.call('PATCH', '/v1/clients/profile', { body: { name: 'Mallory' } }),
    await live.post('/v1/clients/webhook-secret/rotate', undefined),
    await live.post('/v1/clients/signup-secret', undefined),
    await live.post('/v1/clients/webhooks/test', undefined),
    await live.post('/v1/clients/deposits', { amount: 10 }),
    await live.post('/v1/clients/waba/disconnect', undefined),
    await live.post('/v1/clients/password', { current_password: 'x', new_password: 'y y y y y' }),
  ];
  for (const { status, error } of refused) {
    t.is(status, 403);
    t.is(error.code, 'KEY_MANAGEMENT_DISABLED');
  }
  t.is((await live.get('/v1/clients/otps')).status, 200);
  t.is((await live.post('/v1/totp/disable', { phone: '+14155550177' })).status, 200);
  t.is((await set(session, true)).status, 200);
  t.is((await live.post(path, { name: 'x' })).status, 200);
});

test.serial(
  'a session needs a fresh proof for webhook_url and for a cap that is raised or taken away',
  async (t) => {
    const { session, password } = await stack.customer();
    const set = (body: object) => session.call('PATCH', '/v1/clients/settings', { body });
    t.is((await set({ spend_cap_hourly: 10, webhook_url: 'https://a.example/h' })).status, 200);
    clock.forward(10 * minute + 1);
    const sensitive = [
      { webhook_url: 'https://b.example/h' },
      { webhook_url: null },
      { spend_cap_hourly: 10.000001 },
      { spend_cap_hourly: null },
      { keys_manage_account: false },
    ];
    for (const body of sensitive) t.is((await set(body)).error.code, 'REAUTH_REQUIRED');
    t.like((await session.get('/v1/clients/me')).data, {
      webhook_url: 'https://a.example/h',
      spend_cap_hourly: 10,
    });
    for (const body of [{ spend_cap_hourly: 9 }, { waba_template_language: 'en' }]) {
      t.is((await set(body)).status, 200, 'what harms nobody needs none');
    }
    await session.post('/v1/clients/security/reauth', { password });
    for (const body of sensitive) t.is((await set(body)).status, 200);
  },
);

test.serial(
  'the security log says what, with what and from where, newest first, to a session alone',
  async (t) => {
    const { live, liveKeyId, session, accountId } = await stack.customer();
    const made = await make(live);
    await live.call('PATCH', '/v1/clients/settings', {
      body: { webhook_url: 'https://a.example/h', spend_cap_hourly: 5 },
    });
    await live.post('/v1/clients/webhook-secret/rotate', undefined);
    await live.call('PATCH', '/v1/clients/profile', { body: { name: 'Mallory' } });
    await session.call('PATCH', '/v1/clients/profile', { body: { phone: '+14155550178' } });
    const log = await logOf(session);
    t.deepEqual(
      log.map(({ action, by, credential_id: id }) => [action, by, id === liveKeyId]),
      [
        ['phone_changed', 'session', false],
        ['profile_changed', 'key', true],
        ['settings_changed', 'key', true],
        ['settings_changed', 'key', true],
        ['key_created', 'key', true],
        ['login', 'session', false],
      ],
    );
    t.is(log[4]?.subject_id, made.id);
    t.is(log[4]?.ip, '127.0.0.1');
    t.deepEqual(log[3]?.changes, [
      { setting: 'webhook_url', from: null, to: 'https://a.example/h' },
      { setting: 'spend_cap_hourly', from: null, to: '5000000' },
    ]);
    t.deepEqual(log[2]?.changes, [{ setting: 'webhook_secret', from: null, to: null }]);
    const [page] = [await session.get('/v1/clients/security/log?limit=4')];
    const rest = await session.get(`/v1/clients/security/log?before=${page.data.next_before}`);
    t.is((rest.data.items as unknown[]).length, 2);
    t.is(rest.data.next_before, null);
    t.is((await live.get('/v1/clients/security/log')).status, 401);
    const stranger = await stack.customer();
    t.is((await logOf(stranger.session)).length, 1);

    await stack.api
      .db('security_log')
      .where({ account_id: idBytes(accountId), action: 'login' })
      .update({
        id: idBytes(
          `${idAt(clock.now() - 181 * 24 * 60 * minute).slice(0, 14)}7000-8000-000000000001`,
        ),
      });
    await purgeSecurity(stack.api);
    t.is((await logOf(session)).length, 5, 'after 180 days an entry goes');
  },
);

test.serial(
  'events of the account’s security are written with the change they tell of',
  async (t) => {
    const { live, liveKeyId, session, accountId, password } = await stack.customer();
    await stack.api
      .db('account_news')
      .where({ account_id: idBytes(accountId) })
      .delete();
    const held: { type: string; data: Record<string, unknown> }[] = [];
    const { strike } = stack.api.news;
    // What is announced is struck off: kept here to look at.
    stack.api.news.strike = async (id) => {
      const row = await stack.api
        .db('account_news')
        .where({ id: Buffer.from(id, 'hex') })
        .first();
      if (row && Buffer.compare(row.account_id, idBytes(accountId)) === 0) {
        held.push({ type: row.type, data: JSON.parse(row.data) });
      }
      await strike(id);
    };
    try {
      const made = await make(live);
      await live.call('PATCH', '/v1/clients/settings', { body: { spend_cap_hourly: 5 } });
      await session.call('PATCH', '/v1/clients/profile', { body: { phone: '+14155550178' } });
      await session.call('DELETE', `${path}/${made.id}`);
      await session.post('/v1/clients/password', {
        ...{ current_password: password, new_password: 'another long password' },
      });
      const types = await eventually(t, () => (held.length === 5 ? held : undefined));
      t.deepEqual(
        types.map(({ type, data }) => [type, data.by]),
        [
          ['security.key_created', 'key'],
          ['security.settings_changed', 'key'],
          ['security.phone_changed', 'session'],
          ['security.key_revoked', 'session'],
          ['security.password_changed', 'session'],
        ],
      );
      t.like(held[0]?.data, { key_id: made.id, made_by_key_id: liveKeyId, ip: '127.0.0.1' });
      t.deepEqual(held[1]?.data.settings, ['spend_cap_hourly']);
    } finally {
      stack.api.news.strike = strike;
    }
  },
);

test.serial(
  'an address that is replaced hears of it, once, under the secret that it knows',
  async (t) => {
    const { live, accountId } = await stack.customer();
    const receiver = await receive();
    await listenAt(stack, { accountId }, receiver.url);
    const set = (url: string | null) =>
      live.call('PATCH', '/v1/clients/settings', { body: { webhook_url: url } });
    t.is((await set('https://attacker.example/h')).status, 200);
    // The receiver takes only what a secret of the account signs.
    const call = await eventually(t, () => receiver.calls[0]);
    t.is(typeOf(call), 'security.settings_changed');
    t.like(JSON.parse(call.body).data, { settings: ['webhook_url'], by: 'key' });
    const left = async () =>
      (await stack.api.db('former_address_events').where({ account_id: idBytes(accountId) }))
        .length;
    await eventually(t, async () => ((await left()) === 0 ? true : undefined));
    await set(null);
    await set('https://other.example/h');
    t.is(receiver.calls.length, 1, 'later changes are not its business');
    receiver.close();
  },
);

test.serial('a secret that a second rotation ends still signs the news of it', async (t) => {
  const { live, accountId } = await stack.customer();
  const receiver = await receive();
  await listenAt(stack, { accountId }, receiver.url);
  const known = await signingSecrets(stack.api, accountId);
  for (let round = 0; round < 2; round++) {
    t.is((await live.post('/v1/clients/webhook-secret/rotate', undefined)).status, 200);
  }
  // By hand: the package of Standard Webhooks knows no clock but the system's.
  const isSigned = ({ headers, body }: Call): boolean => {
    const key = Buffer.from((known[0] ?? '').slice('whsec_'.length), 'base64');
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    const signature = createHmac('sha256', key).update(signed).digest('base64');
    return String(headers['webhook-signature']).split(' ').includes(`v1,${signature}`);
  };
  const rotations = await eventually(t, async () => {
    const rows = await stack.api
      .db('security_log')
      .where({ account_id: idBytes(accountId), action: 'settings_changed' })
      .orderBy('id', 'desc');
    return rows.length >= 2 ? rows : undefined;
  });
  const second = `evt_${derivedId(idText(rotations[0].id), 'security.settings_changed')}`;
  await eventually(t, () =>
    receiver.calls.some((call) => idOf(call) === second && isSigned(call)) ? true : undefined,
  );
  receiver.close();
});

const formerOf = (accountId: string): Promise<{ attempts: number }[]> =>
  stack.api.db('former_address_events').where({ account_id: idBytes(accountId) });

/** An event for a former address that is due; `present` is the sealed secret of then. */
const writeFormer = async (
  accountId: string,
  { url, present }: { url: string; present: string | null },
) => {
  const about = { id: 'a'.repeat(32), type: 'webhook.test', at: clock.now(), mode: 'live' };
  await stack.api.db('former_address_events').insert({
    id: idBytes(newId()),
    account_id: idBytes(accountId),
    url,
    secrets: JSON.stringify({ present, before: null, beforeUntil: 0 }),
    event: JSON.stringify({
      ...about,
      message: null,
      account_id: accountId,
      request_id: 'r',
      data: { message: 'x' },
    }),
    next_attempt_at: 0,
  });
};

test.serial(
  'a former address that takes nothing is tried four times, and a private one never',
  async (t) => {
    const { live, accountId } = await stack.customer();
    const receiver = await receive((response) => {
      response.statusCode = 500;
      response.end();
    });
    await listenAt(stack, { accountId }, receiver.url);
    const body = { webhook_url: 'https://attacker.example/h' };
    await live.call('PATCH', '/v1/clients/settings', { body });
    // Only once an attempt is noted is the time of the next one known.
    for (let attempts = 1; attempts < 4; attempts++) {
      await eventually(
        t,
        async () => (await formerOf(accountId))[0]?.attempts === attempts || undefined,
      );
      clock.forward(15 * minute);
    }
    await eventually(t, async () => ((await formerOf(accountId)).length === 0 ? true : undefined));
    t.is(receiver.calls.length, 4);
    t.deepEqual(new Set(receiver.calls.map(idOf)).size, 1, 'the same event each time');

    const inside = await stack.customer();
    await writeFormer(inside.accountId, { url: 'https://10.0.0.1/h', present: null });
    await eventually(t, async () => {
      const left = await formerOf(inside.accountId);
      return left.length === 0 ? true : undefined;
    });
    receiver.close();
  },
);

test.serial('an event that no key can sign any more is tried four times, too', async (t) => {
  const { accountId } = await stack.customer();
  await writeFormer(accountId, { url: 'https://a.example/h', present: 'v1.gone.AAAA' });
  for (let attempts = 1; attempts < 4; attempts++) {
    await eventually(
      t,
      async () => (await formerOf(accountId))[0]?.attempts === attempts || undefined,
    );
    clock.forward(15 * minute);
  }
  await eventually(t, async () => (await formerOf(accountId)).length === 0 || undefined);
  t.pass();
});

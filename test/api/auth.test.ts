// API keys at the door: which are taken, which are refused and how fast a refusal holds everywhere (spec section 5).
import test from 'ava';
import sinon from 'sinon';
import { type Listening, listen } from '../../api/listen.ts';
import { type ApiApp, createApiApp } from '../../lib/app.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createKey, revokeKey } from '../../lib/keys/manage.ts';
import { keyFacts, keyHash, newKeyText } from '../../lib/keys/rules.ts';
import { ownerAct } from '../support/acts.ts';
import { createClient } from '../support/client.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let customer: Customer;
let otherApi: ApiApp;
let otherDoor: Listening;
let doors: string[];

test.before(async () => {
  stack = await startStack('auth');
  customer = await stack.customer();
  otherApi = await createApiApp({ config: stack.config, log: silentLog, processName: 'api2' });
  otherDoor = await listen(otherApi);
  doors = [stack.url, `http://127.0.0.1:${otherDoor.port}`];
});
test.after.always(async () => {
  await otherDoor?.close();
  await otherApi?.close();
  await stack?.close();
});

const lookUp = (): string => `/v1/otp/status/otp_${newId()}`;

/** The code of the answer to a look-up that a valid key gets NOT_FOUND for. */
const codeFor = async (url: string, authorization?: string): Promise<string> => {
  const headers = authorization === undefined ? [] : [['Authorization', authorization] as const];
  const answer = await sendRaw(url, { method: 'GET', path: lookUp(), headers });
  const { code } = (JSON.parse(answer.body) as { error: { code: string } }).error;
  return `${answer.status} ${code}`;
};

const refused = '401 INVALID_API_KEY';
const taken = '404 NOT_FOUND';

const keyOf = (mode: 'live' | 'test'): string => customer[mode].key ?? '';

test.serial('a header that is missing or malformed is 401 INVALID_API_KEY', async (t) => {
  const key = keyOf('live');
  const wrong = [
    '',
    'Bearer',
    'Bearer ',
    key,
    `Basic ${Buffer.from(`${key}:`).toString('base64')}`,
    `Token ${key}`,
    `Bearer ${key} more`,
    `Bearer ${key},Bearer ${key}`,
    `Bearer "${key}"`,
    `Bearer\t${key}`,
    `Bearer ${key.slice(0, -1)}`,
    `Bearer ${key}A`,
    `Bearer ${key.toUpperCase()}`,
    `Bearer ${key.toLowerCase()}`,
    'Bearer sk_',
    'Bearer null',
    `Bearer ${'x'.repeat(8_000)}`,
    "Bearer sk_live_tsr_' OR '1'='1",
    'Bearer caf\u00e9',
  ];
  t.is(await codeFor(stack.url), refused);
  for (const value of wrong) t.is(await codeFor(stack.url, value), refused, value.slice(0, 60));
});

test.serial('the scheme is read without case', async (t) => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    t.is(await codeFor(stack.url, `${scheme} ${keyOf('live')}`), taken);
  }
});

test.serial('a mistyped key is refused without a look-up, an unknown one after one', async (t) => {
  const look = sinon.spy(stack.api.keys, 'findBySecret');
  const key = keyOf('live');
  const swap = (at: number) => key.slice(0, at) + (key[at] === 'a' ? 'b' : 'a') + key.slice(at + 1);
  for (const at of [12, 20, key.length - 1]) {
    t.is(await codeFor(stack.url, `Bearer ${swap(at)}`), refused);
  }
  t.is(await codeFor(stack.url, `Bearer ${key.replace('sk_live', 'sk_test')}`), refused);
  t.is(look.callCount, 0);
  const unknown = newKeyText('live');
  t.is(await codeFor(stack.url, `Bearer ${unknown}`), refused);
  t.is(await codeFor(stack.url, `Bearer ${unknown}`), refused);
  t.is(look.callCount, 1, 'that nobody has it is remembered for a moment');
  look.restore();
});

test.serial('the key is looked at before the body, and health needs none', async (t) => {
  const raw = '{"phone":';
  const options = { raw, headers: { authorization: 'Bearer sk_live_nonsense' } };
  const answer = await stack.anybody.call('POST', '/v1/otp/verify', options);
  t.is(answer.error.code, 'INVALID_API_KEY');
  t.is(answer.headers.get('www-authenticate'), 'Bearer');
  t.is((await stack.anybody.get('/health')).status, 200);
  t.is((await stack.anybody.get('/health/channels')).status, 200);
  t.is((await stack.anybody.get('/openapi.json')).status, 200);
});

test.serial('a key that has expired is refused, however well it is remembered', async (t) => {
  const insert = async (expiresAt: number): Promise<string> => {
    const key = newKeyText('live');
    const id = newId();
    const named = {
      ...{ id, familyId: id, madeByKey: null },
      accountId: customer.accountId,
      name: 'old',
      mode: 'live' as const,
    };
    const times = { createdAt: Date.now(), expiresAt, revokedAt: null, lastUsedAt: null };
    await stack.api.keys.insert({ ...named, ...keyFacts(key, 'live'), ...times }, keyHash(key));
    return key;
  };
  t.is(await codeFor(stack.url, `Bearer ${await insert(Date.now() - 1)}`), refused);
  const soon = Date.now() + 700;
  const key = await insert(soon);
  const first = await codeFor(stack.url, `Bearer ${key}`);
  if (Date.now() < soon) t.is(first, taken);
  await eventually(t, async () => {
    const late = Date.now() >= soon;
    const code = await codeFor(stack.url, `Bearer ${key}`);
    if (late) t.is(code, refused);
    return late || undefined;
  });
});

/** Waits until every door answers `code`; a request begun a second after the change must be answered so. */
const heldWithinASecond = async (
  t: Parameters<typeof eventually>[0],
  key: string,
  code: string,
): Promise<void> => {
  const since = performance.now();
  await eventually(t, async () => {
    const late = performance.now() - since > 1_000;
    const codes = await Promise.all(doors.map((url) => codeFor(url, `Bearer ${key}`)));
    if (late) t.deepEqual(codes, [code, code], 'more than a second later');
    return codes.every((each) => each === code) || undefined;
  });
};

test.serial('a revoked key is refused by every process within a second', async (t) => {
  const { key, record } = await createKey(stack.api, {
    ...{ accountId: customer.accountId, name: 'short-lived', mode: 'live', act: ownerAct },
  });
  for (const url of doors) t.is(await codeFor(url, `Bearer ${key}`), taken);
  const { accountId } = customer;
  const named = { accountId, id: record.id, act: ownerAct, keepDescendants: false };
  await revokeKey(stack.api, named);
  t.is(await codeFor(stack.url, `Bearer ${key}`), refused, 'at once where it was revoked');
  await heldWithinASecond(t, key, refused);
  t.is(await codeFor(stack.url, `Bearer ${keyOf('live')}`), taken, 'others are not affected');
  await t.throwsAsync(revokeKey(stack.api, named), { message: /no such resource/ });
});

test.serial('nobody revokes another account’s key', async (t) => {
  const stranger = await stack.customer();
  const { accountId } = stranger;
  const request = { accountId, id: customer.liveKeyId, act: ownerAct, keepDescendants: false };
  await t.throwsAsync(revokeKey(stack.api, request), { message: /no such resource/ });
  t.is(await codeFor(stack.url, `Bearer ${keyOf('live')}`), taken);
});

test.serial(
  'a suspended account is 401 ACCOUNT_SUSPENDED within a second, with every key',
  async (t) => {
    const other = await stack.customer();
    const keys = [other.live.key ?? '', other.test.key ?? ''];
    for (const key of keys)
      for (const url of doors) t.is(await codeFor(url, `Bearer ${key}`), taken);
    await stack.api.accounts.setStatus(other.accountId, 'suspended');
    await stack.api.revocations.announce();
    for (const key of keys) await heldWithinASecond(t, key, '401 ACCOUNT_SUSPENDED');
    const number = aNumber();
    for (const [method, where, body] of [
      ['POST', '/v1/otp/send', { phone: number }],
      ['POST', '/v1/otp/deliver', { phone: number, code: '123456' }],
      ['POST', '/v1/otp/verify', { phone: number, code: '123456' }],
      ['POST', '/v1/otp/telegram-link', { phone: number }],
      ['DELETE', '/v1/otp/telegram-link', { phone: number }],
      ['GET', lookUp(), undefined],
    ] as const) {
      const answer = await other.live.call(method, where, body === undefined ? {} : { body });
      t.is(answer.status, 401, where);
      t.is(answer.error.code, 'ACCOUNT_SUSPENDED', where);
    }
    await stack.api.accounts.setStatus(other.accountId, 'active');
    await stack.api.revocations.announce();
    for (const key of keys) await heldWithinASecond(t, key, taken);
  },
);

test.serial('live and test keys of one account do not meet', async (t) => {
  const phone = stack.phone();
  const once = { 'Idempotency-Key': 'both-modes' };
  const live = await customer.live.send(phone.number, once);
  const sandbox = await customer.test.send(phone.number, once);
  t.is(live.status, 200);
  t.is(sandbox.status, 200, 'neither the limits nor the Idempotency-Keys are shared');
  t.not(live.data.message_id, sandbox.data.message_id);
  t.is((await phone.messages()).length, 1);
  const code = await phone.code();
  const swapped = await customer.test.verify(phone.number, code);
  t.is(swapped.error.code, code === '123456' ? undefined : 'INVALID_CODE');
  t.is((await customer.live.verify(phone.number, code)).status, 200);
  t.is((await customer.live.verify(phone.number, '123456')).error.code, 'OTP_NOT_FOUND');
  t.is((await customer.test.verify(phone.number, '123456')).status, 200);
  t.is((await customer.live.get(`/v1/otp/status/${sandbox.data.message_id}`)).status, 404);
  t.like((await customer.test.get(`/v1/otp/status/${sandbox.data.message_id}`)).data, {
    mode: 'test',
  });
});

test.serial(
  'sends without a key are counted by address, 40 an hour; keys go on working',
  async (t) => {
    const stranger = createClient(stack.url, newKeyText('live'));
    const codes: unknown[] = [];
    let last = await stranger.send(aNumber());
    for (let call = 1; call < 41; call++) {
      codes.push(last.error.code);
      // An address that a client makes up is not believed.
      last = await stranger.send(aNumber(), { 'X-Forwarded-For': `192.0.2.${call}` });
    }
    t.deepEqual(new Set(codes), new Set(['INVALID_API_KEY']));
    t.is(last.status, 429);
    t.like(last.error, {
      ...{ code: 'RATE_LIMIT_EXCEEDED', layer: 'origin', dimension: 'source_ip' },
      ...{ limit: 40, window_seconds: 3600 },
    });
    t.is((await customer.test.send(aNumber())).status, 200);
    t.is(
      await codeFor(stack.url, `Bearer ${newKeyText('live')}`),
      refused,
      'only sends are counted',
    );
  },
);

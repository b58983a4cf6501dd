// Admission on a real Redis, row by row, at the limits of the contract.
import test from 'ava';
import { closeRedis, createRedis, RedisUnavailable } from '../../lib/infra/redis.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import {
  type Admission,
  type AdmissionRequest,
  createAdmission,
} from '../../lib/limits/admission.ts';
import { standardTier, tier1000, tier5000 } from '../../lib/limits/rules.ts';
import {
  contentsUnder,
  keysUnder,
  openTestRedis,
  startRedisServer,
  type TestRedis,
  until,
} from '../support/redis-server.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

const second = 1_000;
const minute = 60 * second;

const base: AdmissionRequest = {
  ...{ operation: 'send', accountId: 'acc', keyId: 'key', mode: 'live', phoneKey: 'f00d' },
  tier: standardTier,
};

/** An admission under its own prefix at a clock of its own, and a shorthand for its answers. */
const createLane = (name: string) => {
  let now = 1_800_000_000_000;
  const prefix = `${server.prefix}${name}:`;
  const admission = createAdmission({ redis: server.redis, prefix, nowMs: () => now });
  const answer = ({ admitted, ...rest }: Admission): string =>
    admitted || !('refusal' in rest)
      ? 'yes'
      : `${rest.refusal.name} ${rest.refusal.retryAfterSeconds}`;
  return {
    admission,
    prefix,
    pass: (ms: number) => {
      now += ms;
    },
    send: async (change: Partial<AdmissionRequest> = {}) =>
      answer(await admission.admit({ ...base, ...change })),
    play: async (phoneKey: string, sourceKey: string) =>
      answer(await admission.admitPlayground({ phoneKey, sourceKey })),
  };
};

test('the same account reaches the same phone once in 30 seconds and three times in any 10 minutes', async (t) => {
  const { send, pass } = createLane('resend');
  t.is(await send(), 'yes');
  t.is(await send({ operation: 'deliver' }), 'resend 30');
  pass(29_999);
  t.is(await send(), 'resend 1');
  pass(1);
  t.is(await send(), 'yes');
  pass(30 * second);
  t.is(await send(), 'yes');
  pass(30 * second);
  t.is(await send(), 'send 510');
  pass(510 * second - 1);
  t.is(await send(), 'send 1');
  pass(1);
  t.is(await send(), 'yes');
});

test('a phone is reached six times in 10 minutes and twenty times in 24 hours by all accounts together', async (t) => {
  const { send, pass } = createLane('phone');
  let account = 0;
  const fromAnother = () => send({ accountId: `a${account++}`, keyId: `k${account}` });
  for (let round = 0; round < 3; round += 1) {
    for (let call = 0; call < 6; call += 1) t.is(await fromAnother(), 'yes');
    t.is(await fromAnother(), 'recipient_10m 600');
    pass(10 * minute);
  }
  t.is(await fromAnother(), 'yes');
  t.is(await fromAnother(), 'yes');
  t.is(await fromAnother(), `recipient_24h ${86_400 - 1_800}`);
  t.is(await send({ accountId: 'x', phoneKey: 'other' }), 'yes');
});

test('of several full limits the one with the longest wait is reported', async (t) => {
  const { send, pass } = createLane('longest');
  for (let call = 0; call < 3; call += 1) {
    t.is(await send(), 'yes');
    pass(30 * second);
  }
  pass(-30 * second);
  // The cooldown asks for 30 s, three in ten minutes for 540.
  t.is(await send(), 'send 540');
});

test('a limit further down with a shorter wait does not hide it', async (t) => {
  const { admission, send } = createLane('hidden');
  const others = Array.from({ length: 99 }, (_, index) => ({ ...base, phoneKey: `p${index}` }));
  await Promise.all(others.map(admission.admit));
  t.is(await send(), 'yes');
  t.is(await send({ phoneKey: 'fresh' }), 'burst 10');
  t.is(await send(), 'resend 30');
});

test('live and test keys do not meet', async (t) => {
  const { send } = createLane('modes');
  t.is(await send(), 'yes');
  t.is(await send({ mode: 'test' }), 'yes');
  t.is(await send({ mode: 'test' }), 'resend 30');
});

test('a key sends and verifies 300 times a minute together, and verifies touch no recipient', async (t) => {
  const { send, admission, prefix } = createLane('credential');
  const verify = { ...base, operation: 'verify' } as const;
  const answers = await Promise.all(Array.from({ length: 299 }, () => admission.admit(verify)));
  t.true(answers.every(({ admitted, window }) => admitted && window.length === 0));
  t.deepEqual(
    (await keysUnder(server.redis, prefix)).map((key) => key.slice(prefix.length)),
    ['lim:{a:l:acc}ckey'],
  );
  t.is(await send(), 'yes');
  t.is(await send({ operation: 'verify' }), 'credential 60');
  t.is(await send({ phoneKey: 'other' }), 'credential 60');
  t.is(await send({ operation: 'verify', keyId: 'second' }), 'yes');
});

test('200 sends at once at a limit of 100: exactly 100', async (t) => {
  const { admission } = createLane('parallel');
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      admission.admit({ ...base, phoneKey: `p${index}`, keyId: `k${index % 7}` }),
    ),
  );
  t.is(answers.filter(({ admitted }) => admitted).length, 100);
  const refusals = answers.flatMap((answer) => (answer.admitted ? [] : [answer.refusal.name]));
  t.deepEqual([...new Set(refusals)], ['burst']);
});

test('the account has 300 a minute and 18,000 an hour in whatever bursts they come', async (t) => {
  const { admission, pass } = createLane('aggregate');
  let serial = 0;
  const volley = async (count: number) => {
    const requests = Array.from({ length: count }, () => ({
      ...base,
      ...{ phoneKey: `p${serial++}`, keyId: `k${serial % 9}` },
    }));
    const answers = await Promise.all(requests.map(admission.admit));
    return answers.filter(({ admitted }) => admitted).length;
  };
  t.is(await volley(101), 100);
  pass(10 * second);
  t.is(await volley(101), 100);
  pass(10 * second);
  t.is(await volley(100), 100);
  pass(10 * second);
  t.is(await volley(1), 0);
  pass(30 * second);
  t.is(await volley(1), 1);
});

test('a refusal takes nothing from any limit', async (t) => {
  const { send, prefix, pass } = createLane('nothing');
  await send();
  await send({ accountId: 'other' });
  pass(second);
  const before = await contentsUnder(server.redis, prefix);
  for (let call = 0; call < 20; call += 1) t.regex(await send(), /^resend/);
  t.deepEqual(await contentsUnder(server.redis, prefix), before);
});

test('giving back frees the account for its phone and leaves what protects the phone', async (t) => {
  const { send, admission, pass } = createLane('give-back');
  const receipts = [];
  for (let call = 0; call < 6; call += 1) {
    const answer = await admission.admit(base);
    t.true(answer.admitted);
    if (answer.admitted) receipts.push(answer.receipt);
    if (answer.admitted) await admission.giveBack(answer.receipt);
    pass(second);
  }
  t.is(await send(), 'recipient_10m 594');
  t.is(await send({ phoneKey: 'other' }), 'yes');
  await admission.giveBack(null);
  const [{ used } = { used: 0 }] = await admission.usage(base);
  t.is(used, 7, 'the account was charged for all of them');
});

test('giving back removes that admission and no other', async (t) => {
  const { send, admission, pass } = createLane('give-back-one');
  t.is(await send(), 'yes');
  pass(30 * second);
  const middle = await admission.admit(base);
  pass(30 * second);
  t.is(await send(), 'yes');
  if (middle.admitted) await admission.giveBack(JSON.parse(JSON.stringify(middle.receipt)));
  t.is(await send(), 'resend 30');
  pass(30 * second);
  t.is(await send(), 'yes');
  pass(30 * second);
  // The first, the third and the fourth are left: the first is two minutes old.
  t.is(await send(), 'send 480');
});

test('usage counts what is in the windows now and takes nothing', async (t) => {
  const { send, admission, pass, prefix } = createLane('usage');
  await send();
  pass(5 * second);
  await send({ phoneKey: 'other' });
  pass(6 * second);
  const before = await contentsUnder(server.redis, prefix);
  const usage = await admission.usage(base);
  t.deepEqual(
    usage.map(({ name, used, limit }) => [name, used, limit]),
    [
      ['burst', 1, 100],
      ['sustained', 2, 300],
      ['hourly', 2, 18_000],
    ],
  );
  t.deepEqual(usage.map(({ resetMs }) => resetMs).slice(0, 2), [4 * second, 49 * second]);
  t.deepEqual(await contentsUnder(server.redis, prefix), before);
  const unused = await admission.usage({ ...base, accountId: 'nobody', tier: tier5000 });
  t.deepEqual(
    unused.flatMap(({ used, resetMs }) => [used, resetMs]),
    [0, 0, 0, 0, 0, 0],
  );
});

test('what is no longer in a window leaves the log', async (t) => {
  const { send, pass, prefix } = createLane('trim');
  for (let call = 0; call < 60; call += 1) {
    await send({ phoneKey: `p${call}` });
    pass(second);
  }
  t.is(await server.redis.llen(`${prefix}lim:{a:l:acc}b`), 10);
  pass(55 * second);
  await send({ phoneKey: 'last' });
  t.is(await server.redis.llen(`${prefix}lim:{a:l:acc}b`), 1);
  t.is(await server.redis.llen(`${prefix}lim:{a:l:acc}s`), 5);
});

test('every key ends by itself, with its longest window', async (t) => {
  const { send, play, prefix } = createLane('ttl');
  await send();
  await send({ accountId: 'large', keyId: 'large', tier: tier5000, phoneKey: 'x' });
  await play('y', '192.0.2.1');
  for (const key of await keysUnder(server.redis, prefix)) {
    const left = await server.redis.pttl(key);
    t.true(left > 0 && left <= 24 * 60 * minute, `${key} ${left}`);
  }
  t.true((await server.redis.pttl(`${prefix}lim:{a:l:acc}b`)) > 9 * second);
  t.true((await server.redis.pttl(`${prefix}lim:{p:l:f00d}p`)) > 23 * 60 * minute);
});

test('a tier that ends leaves its account with the smaller allowance at once', async (t) => {
  const { admission, send } = createLane('downgrade');
  const many = Array.from({ length: 320 }, (_, index) => ({
    ...base,
    ...{ phoneKey: `p${index}`, keyId: `k${index % 9}`, tier: tier1000 },
  }));
  const answers = await Promise.all(many.map(admission.admit));
  t.true(answers.every(({ admitted }) => admitted));
  t.is(await send({ phoneKey: 'late', keyId: 'fresh' }), 'sustained 60');
});

test('a playground send: one a minute, three in 10 minutes, five a day to a phone; twenty an hour from an address', async (t) => {
  const { play, pass, send } = createLane('playground');
  t.is(await play('1', '192.0.2.1'), 'yes');
  t.is(await play('1', '192.0.2.2'), 'playground_1m 60');
  pass(minute);
  t.is(await play('1', '192.0.2.2'), 'yes');
  pass(minute);
  t.is(await play('1', '192.0.2.3'), 'yes');
  pass(minute);
  t.is(await play('1', '192.0.2.3'), 'playground_10m 420');
  pass(7 * minute);
  t.is(await play('1', '192.0.2.3'), 'yes');
  pass(minute);
  t.is(await play('1', '192.0.2.3'), 'yes');
  pass(10 * minute);
  t.is(await play('1', '192.0.2.3'), `playground_24h ${86_400 - 21 * 60}`);
  for (let call = 0; call < 17; call += 1) t.is(await play(`x${call}`, '192.0.2.3'), 'yes');
  t.is(await play('y', '192.0.2.3'), 'source_ip 2460');
  // The playground's sends protect the phone from everybody else's.
  for (let call = 0; call < 4; call += 1)
    t.is(await send({ accountId: `${call}`, phoneKey: 'x0' }), 'yes');
});

test('without a clock of its own it goes by the server, and the window holds', async (t) => {
  const admission = createAdmission({ redis: server.redis, prefix: `${server.prefix}real:` });
  const [seconds] = await server.redis.time();
  const first = await admission.admit(base);
  t.true(first.admitted && first.receipt !== null && first.receipt.at >= Number(seconds) * second);
  const again = await admission.admit(base);
  const wait = again.admitted ? 0 : again.refusal.retryAfterSeconds;
  t.true(wait > 15 && wait <= 30);
  t.true(!again.admitted && Date.parse(again.refusal.resetAt) > Number(seconds) * second);
});

test('a prefix with braces is refused: it would take the place of the Cluster tags', (t) => {
  const deps = { redis: server.redis, prefix: '{x}:' };
  t.throws(() => createAdmission(deps), { instanceOf: TypeError });
});

test('with Redis away nothing is admitted, given back or read: RedisUnavailable', async (t) => {
  const own = await startRedisServer();
  t.teardown(() => own.stop());
  const redis = createRedis({ url: own.url, log: silentLog });
  t.teardown(() => closeRedis(redis));
  const admission = createAdmission({ redis, prefix: 'x:' });
  await until(() => redis.isReady());
  t.true((await admission.admit(base)).admitted);
  await own.kill();
  await until(() => !redis.isReady());
  await t.throwsAsync(admission.admit(base), { instanceOf: RedisUnavailable });
  await t.throwsAsync(admission.giveBack({ key: 'k', at: 1 }), { instanceOf: RedisUnavailable });
  await t.throwsAsync(admission.usage(base), { instanceOf: RedisUnavailable });
});

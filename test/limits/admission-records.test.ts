// What admissions leave in Redis: what is given back, what is counted, how long it stays, and what holds without it.
import test from 'ava';
import { closeRedis, createRedis, RedisUnavailable } from '../../lib/infra/redis.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createAdmission } from '../../lib/limits/admission.ts';
import { tier1000, tier5000 } from '../../lib/limits/rules.ts';
import {
  contentsUnder,
  keysUnder,
  openTestRedis,
  startRedisServer,
  type TestRedis,
  until,
} from '../support/redis-server.ts';
import { base, createLane } from './lane.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

const second = 1_000;
const minute = 60 * second;

test('giving back frees the account for its phone and leaves what protects the phone', async (t) => {
  const { send, admission, pass } = createLane(server, 'give-back');
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
  const { send, admission, pass } = createLane(server, 'give-back-one');
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
  const { send, admission, pass, prefix } = createLane(server, 'usage');
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
  const { send, pass, prefix } = createLane(server, 'trim');
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
  const { send, play, prefix } = createLane(server, 'ttl');
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
  const { admission, send } = createLane(server, 'downgrade');
  const many = Array.from({ length: 320 }, (_, index) => ({
    ...base,
    ...{ phoneKey: `p${index}`, keyId: `k${index % 9}`, tier: tier1000 },
  }));
  const answers = await Promise.all(many.map(admission.admit));
  t.true(answers.every(({ admitted }) => admitted));
  t.is(await send({ phoneKey: 'late', keyId: 'fresh' }), 'sustained 60');
});

test('a playground send: one a minute, three in 10 minutes, five a day to a phone; twenty an hour from an address', async (t) => {
  const { play, pass, send } = createLane(server, 'playground');
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

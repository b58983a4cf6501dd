// The limits of reads and rare changes, with Redis and without.
import test from 'ava';
import { closeRedis, createRedis } from '../../lib/infra/redis.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createReadLimiter, type ReadLimiter, reserveOf } from '../../lib/limits/reads.ts';
import { type ReadRowName, readTable } from '../../lib/limits/table.ts';
import { keysUnder, openTestRedis, type TestRedis } from '../support/redis-server.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

/** How many of `count` calls at once are admitted. */
const admittedOf = async (
  limiter: ReadLimiter,
  name: ReadRowName,
  subject: string,
  count: number,
) => {
  const calls = Array.from({ length: count }, () => limiter.take(name, subject));
  return (await Promise.all(calls)).filter(({ admitted }) => admitted).length;
};

test('each row admits its limit, to each subject for itself, over all processes', async (t) => {
  const limiters = [1, 2].map(() => createReadLimiter(server.redis, `${server.prefix}rows:`));
  const [first, second] = limiters;
  if (first === undefined || second === undefined) return t.fail();
  for (const { name, limit } of readTable) {
    t.is(await admittedOf(first, name, 'one', limit), limit, name);
    t.is(await admittedOf(second, name, 'one', 2), 0, name);
    t.is(await admittedOf(second, name, 'two', 1), 1, name);
  }
});

test('a refusal has the shape of every other refusal, and an end', async (t) => {
  const now = Date.UTC(2026, 10, 20);
  const prefix = `${server.prefix}shape:`;
  const limiter = createReadLimiter(server.redis, prefix, { nowMs: () => now });
  t.is(await admittedOf(limiter, 'export', 'acc', 6), 6);
  const refused = await limiter.take('export', 'acc');
  if (refused.admitted) return t.fail();
  const { retryAfterSeconds, resetAt, ...rest } = refused.refusal;
  t.deepEqual(rest, {
    ...{ name: 'export', reason: 'sustained', layer: 'origin', dimension: 'account' },
    ...{ windowSeconds: 3_600, limit: 6 },
  });
  t.true(retryAfterSeconds > 3_500 && retryAfterSeconds <= 3_600);
  t.is(Date.parse(resetAt), now + retryAfterSeconds * 1_000);
  for (const key of await keysUnder(server.redis, prefix)) {
    t.true((await server.redis.pttl(key)) > 0);
  }
});

test('a status look-up counts for its message first, and for the account only if that has room', async (t) => {
  const limiter = createReadLimiter(server.redis, `${server.prefix}status:`);
  const looks = Array.from({ length: 70 }, () => limiter.takeStatus('acc', 'live', 'otp_1'));
  const answers = await Promise.all(looks);
  t.is(answers.filter(({ admitted }) => admitted).length, 60);
  const names = answers.flatMap((answer) => (answer.admitted ? [] : [answer.refusal.name]));
  t.deepEqual([...new Set(names)], ['status_message']);
  t.is(await admittedOf(limiter, 'status_account', 'live:acc', 600), 540);
  t.true((await limiter.takeStatus('acc', 'test', 'otp_2')).admitted);
});

test('with Redis away each process grants a quarter and says so', async (t) => {
  const redis = createRedis({ url: 'redis://127.0.0.1:1', log: silentLog });
  t.teardown(() => closeRedis(redis));
  const open: string[] = [];
  const limiter = createReadLimiter(redis, 'x:', { onFailOpen: (name) => open.push(name) });
  t.is(await admittedOf(limiter, 'read', 'acc', 31), 30);
  t.is(await admittedOf(limiter, 'register', '192.0.2.1', 2), 1);
  t.is(open.filter((name) => name === 'read').length, 31);
  t.is(open.filter((name) => name === 'register').length, 2);
  t.is(reserveOf(3), 1);
});

test('a mistake is not taken for an outage', async (t) => {
  const prefix = `${server.prefix}mistake:`;
  const limiter = createReadLimiter(server.redis, prefix);
  await limiter.take('read', 'acc');
  const [key = ''] = await keysUnder(server.redis, prefix);
  await server.redis.del(key);
  await server.redis.lpush(key, 'not a counter');
  await t.throwsAsync(limiter.take('read', 'acc'), { message: /WRONGTYPE/ });
});

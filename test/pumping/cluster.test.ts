// The pumping guard on a Redis Cluster: every step stays in one slot, and decides the same.
import test from 'ava';
import { closeRedis, type RedisClient } from '../../lib/infra/redis.ts';
import { startRedisCluster, type TestCluster } from '../support/redis-cluster.ts';
import { connectTo, keysUnder } from '../support/redis-server.ts';
import { ending, endings } from './evidence.ts';
import { createLane, recipients } from './lane.ts';

let cluster: TestCluster;
let redis: RedisClient;
test.before(async () => {
  cluster = await startRedisCluster(2);
  redis = await connectTo(cluster.url);
  // A node is connected to with its first command, and refuses others until it is.
  await keysUnder(redis, 'pumped:');
});
test.after.always(async () => {
  if (redis) await closeRedis(redis);
  await cluster?.stop();
});

test('prefixes of many accounts are held and countries told, each account in a slot of its own', async (t) => {
  const lane = createLane({ redis, prefix: 'pumped:' });
  const accounts = Array.from({ length: 20 }, (_, index) => `a${index}`);
  await Promise.all(
    accounts.map(async (accountId) => {
      await lane.count(endings(30, { accountId }));
      await lane.count([ending({ accountId, origin: 'deliver', type: 'otp.verified' })]);
    }),
  );
  const held = await lane.held();
  for (const whole of [false, true]) {
    const some = held.filter(({ prefix }) => (prefix === null) === whole);
    t.deepEqual(some.map(({ accountId }) => accountId).toSorted(), accounts.toSorted());
  }
  lane.pass(10_000);
  await lane.count([ending({ accountId: 'a20' })]);
  const told = lane.lines.filter(({ fields }) => 'window_seconds' in fields);
  t.is(told.length, 1);
  const blockKey = `g:${recipients.ofPrefix('', '+1415555')}`;
  const tags = (await keysUnder(redis, 'pumped:')).map((key) => /\{(.*)\}/.exec(key)?.[1] ?? '');
  t.deepEqual(
    [...new Set(tags)].toSorted(),
    [...accounts, 'a20', 'c:US', 'g:c:US', blockKey, 'held'].toSorted(),
  );
});

// Heartbeats: who is alive, what they do, and who fell silent.
import test from 'ava';
import { createMysql } from '../../lib/infra/mysql.ts';
import { closeRedis, createRedis, redisReady } from '../../lib/infra/redis.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createHeart } from '../../lib/pulse/heart.ts';
import { createMetrics } from '../../lib/pulse/metrics.ts';
import { judge, offsetOf, type Pulse, processId } from '../../lib/pulse/rules.ts';
import { createPulseStore } from '../../lib/pulse/store.ts';
import { createDatabase } from '../support/databases.ts';
import { testUrl, uniqueName } from '../support/names.ts';
import { eventually } from '../support/stack.ts';

const stand = async () => {
  const database = await createDatabase('pulse');
  const db = createMysql({ url: database.url, pool: 2 });
  const redis = createRedis({ url: testUrl('TESSERA_TEST_REDIS_URL').href, log: silentLog });
  await redisReady(redis, 5_000);
  const prefix = `${uniqueName('p').replaceAll('_', '-')}:`;
  const pulses = createPulseStore({ db, redis, prefix });
  const heartOf = (name: string) =>
    createHeart({
      ...{ name, version: '1.2.3', pulses, redis, clock: systemClock, log: silentLog },
      registry: createMetrics().registry,
      broker: {
        ready: () => true,
        inHand: () => ({ 'whatsapp.send': 3, 'whatsapp.status': 0 }),
        handled: () => ({ 'whatsapp.send': 9, 'whatsapp.status': 0 }),
      },
      requests: () => 7,
    });
  const close = async () => {
    await closeRedis(redis);
    await db.destroy();
    await database.drop();
  };
  return { pulses, redis, heartOf, prefix, close };
};

test('a process says what it is and does; one that ends as it should leaves no trace', async (t) => {
  const { pulses, heartOf, close } = await stand();
  t.deepEqual(await pulses.readPulses(), []);
  const heart = heartOf('whatsapp');
  const other = heartOf('api');
  heart.start();
  other.start();
  const seen = await eventually(t, async () => {
    const found = await pulses.readPulses();
    return found.length === 2 ? found : undefined;
  });
  t.deepEqual(
    seen.map(({ name }) => name),
    ['api', 'whatsapp'],
  );
  const [, whatsapp] = seen;
  t.like(whatsapp, {
    ...{ state: 'alive', pid: process.pid, version: '1.2.3' },
    connected: { redis: true, rabbitmq: true },
    doing: { requests: 7, jobs: { 'whatsapp.send': 3, 'whatsapp.status': 0 } },
  });
  t.true((whatsapp?.rssBytes ?? 0) > 10_000_000);
  t.true((whatsapp?.startedAt ?? 0) <= (whatsapp?.at ?? 0));
  // The engines run on this machine: their clocks are this one.
  await eventually(t, () => {
    const { redis, mysql } = heart.vitals().clockOffsets;
    return redis === null || mysql === null ? undefined : true;
  });
  t.true(Math.abs(heart.vitals().clockOffsets.redis ?? 1e9) < 1_000);
  t.true(Math.abs(heart.vitals().clockOffsets.mysql ?? 1e9) < 1_000);
  await heart.stop();
  t.deepEqual(
    (await pulses.readPulses()).map(({ name }) => name),
    ['api'],
  );
  await other.stop();
  await close();
});

test('an engine that is away costs a beat and nothing else', async (t) => {
  const { redis, heartOf, close } = await stand();
  redis.disconnect();
  const heart = heartOf('api');
  heart.start();
  await eventually(t, () => (heart.vitals().clockOffsets.mysql === null ? undefined : true));
  t.is(heart.vitals().clockOffsets.redis, null);
  await t.notThrowsAsync(heart.stop());
  await close();
});

test('silence for longer than three beats is a loss', (t) => {
  const pulse = { id: processId('api', 'host', 12) } as Pulse;
  t.like(judge(pulse, 1_000, 1_000), { state: 'alive', silentMs: 0 });
  t.like(judge(pulse, 1_000, 7_500), { state: 'alive', silentMs: 6_500 });
  t.like(judge(pulse, 1_000, 7_501), { state: 'lost', silentMs: 6_501 });
  t.is(pulse.id, 'api@host:12');
});

test('an offset is measured against the middle of the question', (t) => {
  t.is(offsetOf(5_000, 1_000, 1_100), 3_950);
  t.is(offsetOf(1_000, 1_000, 1_001), -0);
});

// Heartbeats: who is alive, what they do, and who fell silent.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { createMysql } from '../../lib/infra/mysql.ts';
import { closeRedis, createRedis, redisReady } from '../../lib/infra/redis.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createAliveFile } from '../../lib/pulse/alive-file.ts';
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
  const heartOf = (name: string, file = '') =>
    createHeart({
      ...{ name, version: '1.2.3', pulses, redis, clock: systemClock, log: silentLog },
      registry: createMetrics().registry,
      broker: {
        ready: () => true,
        inHand: () => ({ 'whatsapp.send': 3, 'whatsapp.status': 0 }),
        handled: () => ({ 'whatsapp.send': 9, 'whatsapp.status': 0 }),
      },
      requests: () => 7,
      forwardedIgnored: () => false,
      alive: createAliveFile(file, silentLog),
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
    connected: { redis: true, rabbitmq: true, mysql: true },
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

test('a process whose words cannot be read takes no other with it', async (t) => {
  const { pulses, redis, heartOf, prefix, close } = await stand();
  const heart = heartOf('api');
  heart.start();
  const [own] = await eventually(t, async () => {
    const found = await pulses.readPulses();
    return found.length === 1 ? found : undefined;
  });
  for (const [id, text] of [
    ['old@h:1', '{"metrics": 7}'],
    ['old@h:2', 'not JSON'],
  ]) {
    await redis.set(`${prefix}{pulse}:${id}`, text ?? '');
    await redis.zadd(`${prefix}{pulse}`, Date.now(), id ?? '');
  }
  t.deepEqual(
    (await pulses.readPulses()).map(({ id }) => id),
    [own?.id],
  );
  await heart.stop();
  await close();
});

test('a database that keeps silent is told as away, and does not silence the process', async (t) => {
  const { heartOf, pulses, close } = await stand();
  const answer = Promise.withResolvers<number>();
  let silent = false;
  const ask = pulses.mysqlNow;
  pulses.mysqlNow = () => (silent ? answer.promise : ask());
  const heart = heartOf('api');
  heart.start();
  await eventually(t, () => (heart.vitals().mysqlConnected ? true : undefined));
  t.not(heart.vitals().clockOffsets.mysql, null);
  await heart.stop();

  silent = true;
  const second = heartOf('worker');
  second.start();
  answer.reject(new Error('no answer in time'));
  const seen = await eventually(t, async () => {
    const found = await pulses.readPulses();
    return found.find(({ name }) => name === 'worker');
  });
  t.false(seen.connected.mysql);
  t.is(second.vitals().clockOffsets.mysql, null);
  // Back again: the next beat asks, and not only after half a minute.
  silent = false;
  await eventually(t, () => (second.vitals().mysqlConnected ? true : undefined));
  await second.stop();
  await close();
});

test('an answer that was long under way says nothing of a clock', async (t) => {
  const { heartOf, pulses, close } = await stand();
  pulses.mysqlNow = async () => {
    await new Promise((done) => setTimeout(done, 700));
    return Date.now() + 60_000;
  };
  const heart = heartOf('api');
  heart.start();
  await eventually(t, () => (heart.vitals().mysqlConnected ? true : undefined));
  t.is(heart.vitals().clockOffsets.mysql, null);
  await heart.stop();
  await close();
});

test('the file of a process says that it lives and whether it can work, and goes with it', async (t) => {
  const { redis, heartOf, close } = await stand();
  const file = join(mkdtempSync(join(tmpdir(), 'tessera-')), 'alive');
  const read = () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);
  const heart = heartOf('whatsapp', file);
  heart.start();
  await eventually(t, () => (read() === 'ready\n' ? true : undefined));
  redis.disconnect();
  await eventually(t, () => (read() === 'waiting\n' ? true : undefined));
  await heart.stop();
  t.is(read(), undefined);
  await close();
});

test('a file that cannot be written ends nothing', async (t) => {
  const alive = createAliveFile('/nowhere/at/all', silentLog);
  await t.notThrowsAsync(alive.say(true));
  await t.notThrowsAsync(alive.end());
});

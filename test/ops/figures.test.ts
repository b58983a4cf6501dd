// The board of figures: what one ops process began another goes on with, and what nobody knows is not told.
import type { Channel } from 'amqplib';
import test from 'ava';
import type { Broker } from '../../lib/infra/queue/broker.ts';
import { closeRedis, createRedis, type RedisClient, redisReady } from '../../lib/infra/redis.ts';
import { jobs } from '../../lib/jobs.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createFigureBoard } from '../../lib/ops/figures.ts';
import { createRingStore } from '../../lib/ops/ring-store.ts';
import type { SeenPulse } from '../../lib/pulse/rules.ts';
import { testUrl, uniqueName } from '../support/names.ts';

const job = 'billing.charge';
let redis: RedisClient;

test.before(async () => {
  redis = createRedis({ url: testUrl('TESSERA_TEST_REDIS_URL').href, log: silentLog });
  await redisReady(redis, 5_000);
});

test.after.always(() => closeRedis(redis));

/** A broker and a worker that are what the test says; boards over them are ops processes. */
const stand = () => {
  const world = { ready: 0, settled: 0, silent: false, startedAt: Date.now() - 60_000 };
  const checkQueue = (queue: string) =>
    world.silent
      ? new Promise<never>(() => undefined)
      : Promise.resolve({ messageCount: queue === job ? world.ready : 0, consumerCount: 1 });
  const broker = {
    look: <T>(work: (channel: Channel) => Promise<T>) => work({ checkQueue } as unknown as Channel),
  } as Pick<Broker, 'look'>;
  const pulse = (): SeenPulse =>
    ({
      ...{ id: 'billing@h:1', startedAt: world.startedAt, at: Date.now(), state: 'alive' },
      doing: { requests: 0, jobs: { [job]: 0 }, handled: { [job]: world.settled } },
    }) as unknown as SeenPulse;
  const prefix = `${uniqueName('fig').replaceAll('_', '-')}:`;
  const ring = createRingStore(redis, prefix);
  const board = () =>
    createFigureBoard({
      ...{ broker, ring, clock: systemClock, log: silentLog, management: undefined },
      pulses: { readPulses: async () => [pulse()] },
      letters: { counts: async () => new Map(jobs.map(({ name }) => [name, 0])) },
    });
  /** Lets a step of the ring go by without waiting for it. */
  const age = async (ms: number): Promise<void> => {
    const [text = ''] = await redis.lrange(`${prefix}{ops}:ring:hour`, -1, -1);
    const said = JSON.parse(text) as { step: number; at: number };
    const older = { ...said, step: said.step - Math.ceil(ms / 5_000), at: said.at - ms };
    await redis.lset(`${prefix}{ops}:ring:hour`, -1, JSON.stringify(older));
  };
  const kept = async () => (await ring.read('hour')).samples;
  return { world, board, age, kept };
};

const figureOf = async (board: ReturnType<typeof createFigureBoard>) => {
  const { queues } = await board.now();
  return queues.find((one) => one.job === job);
};

test('what was settled while no ops process looked is counted by the next one', async (t) => {
  const { world, board, age, kept } = stand();
  world.settled = 1_000;
  await board().sample();
  await age(10_000);
  // The first ops process ends here; 5,000 more are done before the second comes.
  world.settled = 6_000;
  const second = board();
  await second.sample();
  t.is((await kept()).at(-1)?.jobs[job]?.done, 5_000);
  t.is((await kept()).length, 2);
});

test('two ops processes keep one past between them: each step once, each job once', async (t) => {
  const { world, board, age, kept } = stand();
  const [one, two] = [board(), board()];
  for (let round = 1; round <= 6; round++) {
    world.settled = round * 100;
    await Promise.all([one.sample(), two.sample()]);
    if (round < 6) await age(5_000);
  }
  const samples = await kept();
  t.is(samples.at(-1)?.jobs[job]?.done, 500);
  t.is(new Set(samples.map(({ at }) => at)).size, samples.length);
});

test('an age is unknown before anything was kept, and then told', async (t) => {
  const { world, board, age } = stand();
  world.ready = 50;
  const ops = board();
  t.like(await figureOf(ops), { oldestAgeMs: null, oldestAgeIsLeast: false });
  await ops.sample();
  await age(20_000);
  const told = await figureOf(ops);
  t.true(told?.oldestAgeIsLeast);
  t.true(Math.abs((told?.oldestAgeMs ?? 0) - 20_000) < 3_000, String(told?.oldestAgeMs));
  world.ready = 0;
  t.like(await figureOf(ops), { oldestAgeMs: 0, oldestAgeIsLeast: false });
});

test('rates of before an outage are not told as those of now', async (t) => {
  const { world, board, age } = stand();
  const ops = board();
  await ops.sample();
  await age(5_000);
  world.settled = 500;
  await ops.sample();
  t.true(((await figureOf(ops))?.outPerSecond ?? 0) > 0);
  await age(60_000);
  t.like(await figureOf(ops), { inPerSecond: null, outPerSecond: null });
});

test('a broker that keeps silent is away within seconds', async (t) => {
  const { world, board } = stand();
  world.silent = true;
  const startedAt = performance.now();
  await t.throwsAsync(board().now(), { message: /no answer in time/ });
  // As long as a slow machine takes, and not as long as the broker keeps silent.
  t.true(performance.now() - startedAt < 30_000);
});

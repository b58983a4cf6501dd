// Stopping: what runs is finished, what was not begun goes back, and what became of a job is said to the end.
import test from 'ava';
import type { Meta, Outcome } from '../../../lib/infra/queue/message.ts';
import {
  aJob,
  createRig,
  named,
  type Rig,
  type TestBroker,
  until,
  type Work,
  work,
} from './rig.ts';

let rig: Rig;
test.before(async () => {
  rig = await createRig('drain');
});
test.after.always(() => rig?.close());

/** A consumer whose jobs begin, and end when the gate is opened. */
const consumeHeld = async (broker: TestBroker, job: ReturnType<typeof aJob>) => {
  const gate = Promise.withResolvers<void>();
  const begun: number[] = [];
  const consumer = await broker.consume(job, async ({ number }) => {
    begun.push(number);
    await gate.promise;
    return { kind: 'done' };
  });
  return { gate, begun, consumer };
};

test('running handlers finish, and everything else is back in its queue', async (t) => {
  const job = aJob('drain.stop', { prefetch: 5 });
  const broker = await rig.broker([job]);
  const { gate, begun, consumer } = await consumeHeld(broker, job);
  for (let number = 0; number < 40; number++) await broker.publish(job, work(number), named());
  await until(() => begun.length === 5);
  const stopped = consumer.stop();
  gate.resolve();
  await stopped;
  t.is(begun.length, 5);
  t.is(broker.stats()['drain.stop.done'], 5);
  await until(async () => {
    const { ready, consumers } = await broker.depth('drain.stop');
    return ready === 35 && consumers === 0;
  });
  // The others of this process work on.
  t.true(broker.ready());
  t.is(broker.stats().channelDeaths, 0);
  const second = await broker.consume(job, async () => ({ kind: 'done' }));
  await until(() => broker.stats()['drain.stop.done'] === 40);
  await second.stop();
});

test('what waits for its turn is in hand, and goes back unread when the consumer stops', async (t) => {
  const job = aJob('drain.turns', { prefetch: 5, bytesAtOnce: 1 });
  const broker = await rig.broker([job]);
  const { gate, begun, consumer } = await consumeHeld(broker, job);
  for (let number = 0; number < 7; number++) await broker.publish(job, work(number), named());
  await until(() => broker.inHand()['drain.turns'] === 5);
  t.deepEqual(begun, [0]);
  const stopped = consumer.stop();
  gate.resolve();
  await stopped;
  t.deepEqual(begun, [0]);
  await until(async () => (await broker.depth('drain.turns')).ready === 6);
});

test('stopping under load loses nothing, and what is done twice was marked as maybe done', async (t) => {
  const job = aJob('drain.load', { prefetch: 50 });
  const broker = await rig.broker([job]);
  const times = new Map<number, number>();
  const unmarked: number[] = [];
  const handle = async ({ number }: Work, { redelivered }: Meta): Promise<Outcome> => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 5));
    if (times.has(number) && !redelivered) unmarked.push(number);
    times.set(number, (times.get(number) ?? 0) + 1);
    return { kind: 'done' };
  };
  let consumer = await broker.consume(job, handle);
  const total = 1_900;
  const numbers = Array.from({ length: total }, (_, number) => number);
  const published = Promise.all(
    numbers.map((number) => broker.publish(job, work(number), named())),
  );
  for (let restart = 0; restart < 5; restart++) {
    const before = times.size;
    await until(() => times.size > before + 50);
    await consumer.stop();
    consumer = await broker.consume(job, handle);
  }
  await published;
  await until(() => times.size === total);
  await consumer.stop();
  t.deepEqual(unmarked, []);
  // The broker promises no more than that; an orderly stop gives it little occasion.
  const twice = [...times.values()].filter((count) => count > 1).length;
  t.true(twice < total / 20, `${twice} done twice`);
});

test('closing the broker drains its consumers: a retry that is being written is not lost', async (t) => {
  const job = aJob('drain.retry', { retrySeconds: [30] });
  const broker = await rig.broker([job]);
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  await broker.consume(job, async () => {
    begun++;
    await gate.promise;
    return { kind: 'retry', reason: 'busy' };
  });
  for (let number = 0; number < 3; number++) await broker.publish(job, work(number), named());
  await until(() => begun === 3);
  const closed = broker.close();
  gate.resolve();
  await closed;
  const again = await rig.broker([job]);
  t.is((await again.depth('drain.retry')).ready, 0);
  t.is((await again.depth('drain.retry.wait.30s')).ready, 3);
});

test('a job is not done again because its outcome cannot be written for a while', async (t) => {
  const job = aJob('drain.held', { retrySeconds: [30] });
  const broker = await rig.broker([job]);
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  await broker.consume(job, async () => {
    runs++;
    await gate.promise;
    return { kind: 'retry', reason: 'busy' };
  });
  await broker.publish(job, work(), named());
  await until(() => runs === 1);
  // Only the publishing side loses its way.
  const channel = broker.channels.get('publish');
  const connection = channel?.connection as unknown as { emit(event: string, why?: string): void };
  connection.emit('blocked', 'low on memory');
  gate.resolve();
  await until(() => (broker.stats().refused ?? 0) > 3);
  t.is((await broker.depth('drain.held.wait.30s')).ready, 0);
  connection.emit('unblocked');
  await until(async () => (await broker.depth('drain.held.wait.30s')).ready === 1);
  await until(() => broker.stats()['drain.held.retry'] === 1);
  t.is(runs, 1);
});

test('a ladder that was taken away does not lose the job: it comes again', async (t) => {
  const job = aJob('drain.ladder', { retrySeconds: [30] });
  const broker = await rig.broker([job]);
  const operator = await rig.operator();
  await operator.deleteQueue('drain.ladder.wait.30s');
  const deliveries: boolean[] = [];
  await broker.consume(job, async (_, { redelivered }) => {
    deliveries.push(redelivered);
    return deliveries.length < 2 ? { kind: 'retry', reason: 'busy' } : { kind: 'done' };
  });
  await broker.publish(job, work(), named());
  await until(() => broker.stats()['drain.ladder.done'] === 1);
  t.deepEqual(deliveries, [false, true]);
});

test('stopping a consumer that waits for its connection ends at once', async (t) => {
  const job = aJob('drain.offline');
  const broker = await rig.broker([job], { start: false });
  const consumer = await broker.consume(job, async () => ({ kind: 'done' }));
  await consumer.stop();
  await broker.start();
  t.like(await broker.depth('drain.offline'), { ready: 0, consumers: 0 });
});

// Trouble on the line: whatever ends, everything comes back by itself, and nothing that was confirmed is lost.
import test from 'ava';
import type { Outcome } from '../../../lib/infra/queue/message.ts';
import { management } from './management.ts';
import {
  aJob,
  createLine,
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
  rig = await createRig('recovery');
});
test.after.always(() => rig?.close());

const toBody = (number: number): Buffer => Buffer.from(JSON.stringify(work(number)));

const collecting = () => {
  const numbers = new Set<number>();
  const handle = async ({ number }: Work): Promise<Outcome> => {
    numbers.add(number);
    return { kind: 'done' };
  };
  return { numbers, handle };
};

/** Publishes until told to stop; answers the numbers that were confirmed. */
const stream = (broker: TestBroker, job: ReturnType<typeof aJob>) => {
  const confirmed: number[] = [];
  let sent = 0;
  let stopping = false;
  const lane = async (): Promise<void> => {
    while (!stopping) {
      const number = ++sent;
      await broker.publish(job, work(number), named()).then(
        () => confirmed.push(number),
        () => new Promise((resolve) => setTimeout(resolve, 5)),
      );
    }
  };
  const lanes = Array.from({ length: 8 }, lane);
  return {
    confirmed,
    stop: async () => {
      stopping = true;
      await Promise.all(lanes);
    },
  };
};

for (const side of ['publish', 'consume']) {
  test(`the broker ends the connection to ${side}: it comes back, and nothing confirmed is lost`, async (t) => {
    const job = aJob(`recovery.${side}`);
    const broker = await rig.broker([job]);
    const { numbers, handle } = collecting();
    await broker.consume(job, handle);
    const publishing = stream(broker, job);
    await management.closeConnection(rig.vhost, `${broker.processName} ${side}`);
    await until(() => broker.stats().reconnects === 1);
    await until(() => broker.ready());
    const before = publishing.confirmed.length;
    await until(() => publishing.confirmed.length > before + 50);
    await publishing.stop();
    await until(() => publishing.confirmed.every((number) => numbers.has(number)));
    t.is(broker.stats().channelDeaths, 0);
  });
}

test('a cut line under load: all comes back, nothing confirmed is lost', async (t) => {
  const job = aJob('recovery.cut');
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const broker = await rig.broker([job], { urls: [line.url] });
  const { numbers, handle } = collecting();
  await broker.consume(job, handle);
  const publishing = stream(broker, job);
  for (const round of [1, 2]) {
    await until(() => publishing.confirmed.length > 100 * round);
    line.cut();
    await until(() => (broker.stats().reconnects ?? 0) >= 2 * round);
  }
  const before = publishing.confirmed.length;
  await until(() => publishing.confirmed.length > before + 50);
  await publishing.stop();
  await until(() => publishing.confirmed.every((number) => numbers.has(number)));
  t.is(broker.stats().unconfirmed, 0);
});

test('a channel that dies alone, publishing: what is lost is unknown, and publishing works again', async (t) => {
  const job = aJob('recovery.channel.publish');
  const broker = await rig.broker([job]);
  const channel = broker.channels.get('publish');
  const waiting = broker.publish(job, work(), named());
  channel?.assertQueue(job.name, { durable: false }).catch(() => undefined);
  await waiting.catch(() => undefined);
  await until(() => broker.stats().reconnects === 1);
  t.is(broker.stats().channelDeaths, 1);
  await until(() => broker.ready());
  await broker.publish(job, work(), named());
  t.not(broker.channels.get('publish'), channel);
});

test('a channel that dies alone, consuming: five of five jobs are handled', async (t) => {
  const job = aJob('recovery.channel.consume');
  const broker = await rig.broker([job]);
  const { numbers, handle } = collecting();
  await broker.consume(job, handle);
  await broker.publish(job, work(1), named());
  await until(() => numbers.has(1));
  const channel = broker.channels.get(job.name);
  channel?.assertQueue(job.name, { durable: false }).catch(() => undefined);
  await until(() => broker.stats().channelDeaths === 1);
  for (const number of [2, 3, 4, 5]) {
    await until(() =>
      broker.publish(job, work(number), named()).then(
        () => true,
        () => false,
      ),
    );
  }
  await until(() => numbers.size === 5);
  const { consumers } = await until(async () => {
    const depth = await broker.depth(job.name).catch(() => undefined);
    return depth?.consumers === 1 && depth;
  });
  t.is(consumers, 1);
});

test('an ack too many closes a channel: the handlers’ own acks make no noise, the jobs come again', async (t) => {
  const job = aJob('recovery.acks');
  const broker = await rig.broker([job]);
  const gate = Promise.withResolvers<void>();
  const seen: { number: number; redelivered: boolean }[] = [];
  await broker.consume(job, async ({ number }, { redelivered }) => {
    seen.push({ number, redelivered });
    await gate.promise;
    return { kind: 'done' };
  });
  for (const number of [1, 2, 3]) await broker.publish(job, work(number), named());
  await until(() => seen.length === 3);
  broker.channels.get(job.name)?.ack({ fields: { deliveryTag: 999 } } as never);
  await until(() => broker.stats().channelDeaths === 1);
  gate.resolve();
  await until(() => seen.length === 6);
  t.true(seen.slice(3).every(({ redelivered }) => redelivered));
  await until(() => broker.stats()['recovery.acks.done'] === 6);
  await broker.close();
  t.is((await (await rig.broker([job])).depth(job.name)).ready, 0);
});

test('queues that are deleted under the consumers of two processes are consumed again by both; replies go on', async (t) => {
  const job = aJob('recovery.deleted');
  const workers = [await rig.broker([job]), await rig.broker([job])];
  const seen = workers.map(() => collecting());
  const [first] = workers;
  for (const [index, worker] of workers.entries()) {
    await worker.consume(job, seen[index]?.handle ?? (() => Promise.reject(new Error('nobody'))));
  }
  const addresses = workers.map((worker) => worker.replyAddress());
  const operator = await rig.operator();
  // One after the other: a queue that goes while it is being set up again costs a channel, rightly.
  for (const [index, queue] of [job.name, `${job.name}.again`].entries()) {
    await operator.deleteQueue(queue);
    for (const worker of workers) await until(() => worker.stats().cancelled === index + 1);
    await until(async () => {
      const depth = await first?.depth(queue).catch(() => undefined);
      return depth?.consumers === 2;
    });
  }
  // Taken in turns, so each of the two hears of both queues.
  for (let number = 0; number < 40; number++) {
    operator.publish('job', number % 2 ? job.name : `${job.name}.again`, toBody(number));
  }
  await until(() => seen.reduce((sum, { numbers }) => sum + numbers.size, 0) === 40);
  t.true(seen.every(({ numbers }) => numbers.size > 0));
  t.deepEqual(
    workers.map((worker) => worker.replyAddress()),
    addresses,
  );
  t.true(workers.every((worker) => worker.stats().reconnects === 0));
});

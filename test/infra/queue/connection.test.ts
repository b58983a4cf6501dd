// One connection: how it is sought, how it notices silence, and how it ends.
import test from 'ava';
import { backoffMs, readAddresses } from '../../../lib/infra/queue/connection.ts';
import {
  aJob,
  createLine,
  createRig,
  errorOf,
  keptLog,
  named,
  type Rig,
  until,
  work,
} from './rig.ts';

let rig: Rig;
test.before(async () => {
  rig = await createRig('connection');
});
test.after.always(() => rig?.close());

test('a broker that falls silent is noticed by its missing heartbeats', async (t) => {
  const job = aJob('connection.silent');
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const broker = await rig.broker([job], { urls: [`${line.url}?heartbeat=1`] });
  const numbers = new Set<number>();
  await broker.consume(job, async ({ number }) => {
    numbers.add(number);
    return { kind: 'done' };
  });
  line.freeze();
  const unknown = errorOf(broker.publish(job, work(1), named()));
  await until(() => !broker.ready());
  t.is((await unknown).name, 'OutcomeUnknown');
  line.thaw();
  await until(() => broker.ready());
  await broker.publish(job, work(2), named());
  await until(() => numbers.has(2));
});

test('closing while the broker is silent ends within a bound and stays ended', async (t) => {
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const broker = await rig.broker([aJob('connection.closing')], { urls: [line.url] });
  line.freeze();
  const startedAt = performance.now();
  await broker.close();
  t.true(performance.now() - startedAt < 30_000);
  line.thaw();
  await until(() => line.connections() === 0);
  t.false(broker.ready());
  t.is(broker.stats().reconnects, 0);
});

test('closing while it connects leaves no connection behind, and the start is told', async (t) => {
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const broker = await rig.broker([], { urls: [line.url], start: false });
  line.freeze();
  const started = errorOf(broker.start());
  await until(() => line.connections() === 2);
  await broker.close();
  t.is((await started).name, 'BrokerUnavailable');
  line.thaw();
  await until(() => line.connections() === 0);
  t.false(broker.ready());
});

test('with several addresses the next one is tried', async (t) => {
  const [dead, alive] = [await createLine(rig.url), await createLine(rig.url)];
  t.teardown(alive.close);
  await dead.close();
  const job = aJob('connection.addresses');
  const broker = await rig.broker([job], { urls: [dead.url, alive.url] });
  await broker.publish(job, work(), named());
  t.is(alive.connections(), 2);
});

test('a start waits for a broker that is not there yet', async (t) => {
  const first = await createLine(rig.url);
  await first.close();
  const log = keptLog();
  const broker = await rig.broker([], { urls: [first.url], log, start: false });
  const started = broker.start();
  await until(() => log.lines.filter((line) => line.startsWith('broker not reached')).length > 3);
  t.false(broker.ready());
  await broker.close();
  await t.throwsAsync(started);
  t.false(log.lines.some((line) => line.includes(new URL(rig.url).password)));
});

test('addresses get a heartbeat; what is no address is refused without being shown', (t) => {
  t.deepEqual(readAddresses(['amqp://h/v', 'amqps://h/v?heartbeat=3']), [
    'amqp://h/v?heartbeat=10',
    'amqps://h/v?heartbeat=3',
  ]);
  for (const url of ['not a url with secret', 'http://u:secret@h/', '']) {
    const error = t.throws(() => readAddresses([url]));
    t.false(error?.message.includes('secret'));
  }
  t.throws(() => readAddresses([]));
});

test('the backoff grows from 100 ms to 5 s and is spread by half', (t) => {
  t.deepEqual(
    [0, 1, 2, 5, 6, 50].map((failures) => backoffMs(failures, 1)),
    [100, 200, 400, 3_200, 5_000, 5_000],
  );
  t.is(backoffMs(6, 0), 2_500);
});

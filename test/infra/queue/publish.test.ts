// Publishing on a real broker: what is confirmed, refused at once, refused by the broker, or never known.
import type { EventEmitter } from 'node:events';
import test from 'ava';
import {
  BrokerUnavailable,
  OutcomeUnknown,
  QueueFull,
  Unroutable,
} from '../../../lib/infra/queue/errors.ts';
import {
  aJob,
  createLine,
  createRig,
  errorOf,
  named,
  type Rig,
  until,
  type Work,
  work,
} from './rig.ts';

let rig: Rig;
test.before(async () => {
  rig = await createRig('publish');
});
test.after.always(() => rig?.close());

const settledWithin = async (ms: number, promise: Promise<unknown>): Promise<boolean> => {
  const startedAt = performance.now();
  await promise.catch(() => undefined);
  return performance.now() - startedAt < ms;
};

test('a confirmed job is in its queue, persistent, with what was said about it', async (t) => {
  const job = aJob('publish.fine');
  const broker = await rig.broker([job]);
  const deadlineMs = Date.now() + 60_000;
  await broker.publish(job, work(7), {
    ...{ messageId: 'id-1', requestId: 'req-1', replyTo: 'somewhere', correlationId: 'cor-1' },
    deadlineMs,
  });
  t.is((await broker.depth('publish.fine')).ready, 1);
  const { content, properties } = await rig.take('publish.fine');
  t.deepEqual(JSON.parse(content.toString()), { number: 7 });
  t.like(properties, {
    ...{ messageId: 'id-1', replyTo: 'somewhere', correlationId: 'cor-1', deliveryMode: 2 },
    contentType: 'application/json',
  });
  t.like(properties.headers, { attempt: 1, request_id: 'req-1', deadline: deadlineMs });
  t.like(broker.stats(), { published: 1, nacked: 0, returned: 0, unconfirmed: 0 });
});

test('a job no queue takes is unroutable, and its neighbours are not', async (t) => {
  const [here, gone] = [aJob('publish.here'), aJob('publish.gone')];
  const broker = await rig.broker([here]);
  const all = await Promise.allSettled(
    Array.from({ length: 50 }, (_, turn) =>
      broker.publish(turn % 2 ? gone : here, work(), named()),
    ),
  );
  t.true(all.every(({ status }, turn) => (status === 'rejected') === (turn % 2 === 1)));
  t.true((await errorOf(broker.publish(gone, work(), named()))) instanceof Unroutable);
  t.is(broker.stats().returned, 26);
});

test('a full queue refuses, and takes again when there is room', async (t) => {
  const job = aJob('publish.full', { maxLength: 2 });
  const broker = await rig.broker([job]);
  // A quorum queue notices its limit a little late.
  const refusal = await until(() =>
    broker.publish(job, work(), named()).then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  t.true(refusal instanceof QueueFull);
  const operator = await rig.operator();
  await operator.purgeQueue('publish.full');
  await until(() =>
    broker.publish(job, work(), named()).then(
      () => true,
      () => false,
    ),
  );
  t.true((broker.stats().nacked ?? 0) > 0);
});

test('an event needs no listener; with several, each job gets its own copy', async (t) => {
  const [one, two] = ['publish.one', 'publish.two'].map((name) =>
    aJob(name, { bindings: ['thing.*'] }),
  );
  if (!one || !two) return t.fail();
  const broker = await rig.broker([one, two]);
  await broker.emit('nobody.listens', work(), named());
  await broker.emit('thing.happened', work(3), named());
  for (const name of ['publish.one', 'publish.two']) {
    t.deepEqual(JSON.parse((await rig.take(name)).content.toString()), { number: 3 });
    t.is((await broker.depth(name)).ready, 0);
  }
});

test('an event that one of two queues has no room for is refused, and the other queue has it', async (t) => {
  const tight = aJob('publish.tight', { maxLength: 1, bindings: ['tight.event'] });
  const wide = aJob('publish.wide', { bindings: ['tight.event'] });
  const broker = await rig.broker([tight, wide]);
  let sent = 0;
  const refusal = await until(() =>
    broker.emit('tight.event', work(++sent), named()).then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  t.true(refusal instanceof QueueFull);
  await until(async () => (await broker.depth('publish.wide')).ready === sent);
  t.pass();
});

test('before the start and after the end a publish is refused at once', async (t) => {
  const job = aJob('publish.ends');
  const broker = await rig.broker([job], { start: false });
  t.false(broker.ready());
  t.true((await errorOf(broker.publish(job, work(), named()))) instanceof BrokerUnavailable);
  await broker.start();
  await broker.publish(job, work(), named());
  await broker.close();
  t.true((await errorOf(broker.publish(job, work(), named()))) instanceof BrokerUnavailable);
  t.true((await errorOf(broker.depth('publish.ends'))) instanceof BrokerUnavailable);
  t.is(broker.replyAddress(), undefined);
  t.is(broker.stats().refused, 2);
});

test('a silent broker: the outcome is unknown in time, later publishes are counted, the limit holds', async (t) => {
  const job = aJob('publish.silent');
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const broker = await rig.broker([job], { urls: [line.url], publishTimeoutMs: 600 });
  line.freeze();
  const waiting = Array.from({ length: 2_000 }, () =>
    errorOf(broker.publish(job, work(), named())),
  );
  t.true((await errorOf(broker.publish(job, work(), named()))) instanceof BrokerUnavailable);
  t.true(await settledWithin(5_000, Promise.all(waiting)));
  t.true((await Promise.all(waiting)).every((error) => error instanceof OutcomeUnknown));
  // What was given up is still owed by the broker: taking more would be a hidden buffer.
  t.true((await errorOf(broker.publish(job, work(), named()))) instanceof BrokerUnavailable);
  line.thaw();
  await until(() => broker.stats().unconfirmed === 0);
  await broker.publish(job, work(), named());
  t.is((await broker.depth('publish.silent')).ready, 2_001);
});

test('a line that is cut while confirms are on their way: unknown, never hanging, never a guess', async (t) => {
  const job = aJob('publish.cut');
  const line = await createLine(rig.url);
  t.teardown(line.close);
  const broker = await rig.broker([job], { urls: [line.url], publishTimeoutMs: 60_000 });
  line.freeze();
  const waiting = Array.from({ length: 100 }, () => errorOf(broker.publish(job, work(), named())));
  line.cut();
  t.true((await Promise.all(waiting)).every((error) => error instanceof OutcomeUnknown));
  t.is(broker.stats().unknown, 100);
  t.true((await errorOf(broker.publish(job, work(), named()))) instanceof BrokerUnavailable);
});

test('a blocked broker is not written to: jobs are refused, replies count as lost, unblocking ends it', async (t) => {
  const job = aJob('publish.blocked');
  const broker = await rig.broker([job]);
  // An alarm holds for a whole broker, which other tests use too: its word alone is played here.
  const connection = broker.channels.get('publish')?.connection as unknown as EventEmitter;
  connection.emit('blocked', 'low on memory');
  t.false(broker.ready());
  t.true((await errorOf(broker.publish(job, work(), named()))) instanceof BrokerUnavailable);
  broker.reply({ replyTo: 'anybody', correlationId: 'x' }, {});
  await until(() => broker.stats().replyLost === 1);
  connection.emit('unblocked');
  t.true(broker.ready());
  await broker.publish(job, work(), named());
});

test('what cannot be encoded is the error of its caller alone: the channel and its confirms go on', async (t) => {
  const job = aJob('publish.huge');
  const broker = await rig.broker([job]);
  const huge = broker.publish(job, work(), { ...named(), requestId: 'x'.repeat(70_000) });
  const next = broker.publish(job, work(), named());
  const bigint = broker.publish(job, { number: 1n } as unknown as Work, named());
  t.true((await errorOf(huge)) instanceof RangeError);
  t.true((await errorOf(bigint)) instanceof TypeError);
  await next;
  t.like(broker.stats(), { published: 1, channelDeaths: 0, unconfirmed: 0 });
});

test('small frames carry large messages', async (t) => {
  const job = aJob('publish.frames', { bindings: ['frames'] });
  const url = `${rig.url}?frameMax=8192`;
  const broker = await rig.broker([job], { urls: [url] });
  const body = { text: 'ä'.repeat(100_000) };
  await broker.emit('frames', body, named());
  t.deepEqual(JSON.parse((await rig.take('publish.frames')).content.toString()), body);
});

test('a message id may be used twice at the same time', async (t) => {
  const [here, gone] = [aJob('publish.twice'), aJob('publish.nowhere')];
  const broker = await rig.broker([here]);
  const options = named();
  const [first, second, third] = await Promise.allSettled([
    broker.publish(here, work(), options),
    broker.publish(gone, work(), options),
    broker.publish(here, work(), options),
  ]);
  t.deepEqual([first.status, second.status, third.status], ['fulfilled', 'rejected', 'fulfilled']);
});

// The queue layer on a real broker: what is confirmed, refused, retried, buried, drained, and what a lost line changes.
import amqp from 'amqplib';
import test, { type ExecutionContext } from 'ava';
import { type Broker, createBroker } from '../../lib/infra/queue/broker.ts';
import {
  BrokerUnavailable,
  OutcomeUnknown,
  QueueFull,
  Unroutable,
} from '../../lib/infra/queue/errors.ts';
import type { Meta, Outcome } from '../../lib/infra/queue/message.ts';
import { topologyOf } from '../../lib/infra/queue/topology.ts';
import type { Job } from '../../lib/jobs.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { integer, object, text } from '../../lib/kernel/schema.ts';
import { closeConnections, listQueues } from '../support/management.ts';
import { eventually } from '../support/stack.ts';
import { createVhost, type TestVhost } from '../support/vhosts.ts';

type Work = { name: string; number: number };

const job = (name: string, more: Partial<Job<Work>> = {}): Job<Work> => ({
  name,
  payload: object({ name: text(), number: integer() }) as unknown as Job<Work>['payload'],
  retrySeconds: [1],
  maxLength: 1_000,
  prefetch: 10,
  bindings: [],
  ...more,
});

const echo = job('test.echo');
const flaky = job('test.flaky', { retrySeconds: [1, 2] });
const narrow = job('test.narrow', { maxLength: 2 });
const bound = job('test.bound', { bindings: ['thing.happened'] });
const lost = job('test.lost');
const slow = job('test.slow', { prefetch: 2 });
const poison = job('test.poison');
const patient = job('test.patient');
const cut = job('test.cut');
const late = job('test.late', { retrySeconds: [1, 2] });
const catalogue = [
  echo,
  flaky,
  narrow,
  bound,
  slow,
  poison,
  patient,
  late,
  cut,
] as unknown as Job[];

class Away extends Error {}

let vhost: TestVhost;
const open: Broker[] = [];

const aBroker = async (name: string, publishTimeoutMs = 5_000): Promise<Broker> => {
  const broker = createBroker({
    urls: [vhost.url],
    processName: name,
    jobs: catalogue,
    log: silentLog,
    clock: systemClock,
    isOutage: (error) => error instanceof Away,
    publishTimeoutMs,
  });
  await broker.start();
  open.push(broker);
  return broker;
};

test.before(async () => {
  vhost = await createVhost('queue');
});
test.after.always(async () => {
  await Promise.all(open.map((broker) => broker.close()));
  await vhost?.drop();
});

const work = (number = 1): Work => ({ name: 'work', number });
const named = () => ({ messageId: newId() });

/** Takes one message of a queue as an operator would. */
const peek = async (t: ExecutionContext, queue: string): Promise<amqp.GetMessage> => {
  const connection = await amqp.connect(vhost.url);
  const channel = await connection.createChannel();
  const found = await eventually(
    t,
    async () => (await channel.get(queue, { noAck: true })) || undefined,
  );
  await connection.close();
  return found;
};

test('the broker has just what the catalogue says', async (t) => {
  await aBroker('topology');
  const planned = topologyOf(catalogue).queues;
  const found = (await listQueues(vhost.name)).filter(({ name }) => !name.startsWith('amq.gen'));
  t.deepEqual(found.map(({ name }) => name).sort(), planned.map(({ name }) => name).sort());
  for (const { name, arguments: wanted } of planned) {
    t.deepEqual(found.find((queue) => queue.name === name)?.arguments, wanted, name);
  }
});

test('a question is answered, more than once if need be, and late answers wait for nobody', async (t) => {
  const broker = await aBroker('echo');
  const consumer = await broker.consume(
    echo,
    async ({ number }, { replyTo = '', correlationId = '' }) => {
      broker.reply({ replyTo, correlationId }, { number, turn: 1 });
      broker.reply({ replyTo, correlationId }, { number, turn: 2 });
      return { kind: 'done' };
    },
  );
  const id = newId();
  const replies = broker.expectReplies(id);
  await broker.publish(echo, work(7), {
    ...{ messageId: id, correlationId: id, replyTo: broker.replyAddress() ?? '' },
  });
  t.deepEqual(await replies.next(5_000), { number: 7, turn: 1 });
  t.deepEqual(await replies.next(5_000), { number: 7, turn: 2 });
  t.is(await replies.next(50), undefined);
  replies.close();
  await consumer.stop();
});

test('a reply to nobody is counted and nothing else', async (t) => {
  const broker = await aBroker('lost-reply');
  broker.reply({ replyTo: 'amq.gen-nobody', correlationId: 'x' }, {});
  await eventually(t, () => (broker.stats().replyLost === 1 ? true : undefined));
  t.pass();
});

test('a job no queue takes is unroutable, a full queue refuses', async (t) => {
  const broker = await aBroker('refusals');
  await t.throwsAsync(broker.publish(lost, work(), named()), { instanceOf: Unroutable });
  // A quorum queue notices its limit a little late.
  const fill = async (): Promise<never> => {
    for (let tries = 0; tries < 500; tries++) await broker.publish(narrow, work(), named());
    throw new Error('never refused');
  };
  await t.throwsAsync(fill(), { instanceOf: QueueFull });
});

test('an event reaches the jobs that are bound to it, and needs none', async (t) => {
  const broker = await aBroker('events');
  const heard = Promise.withResolvers<Work>();
  const consumer = await broker.consume(bound, (payload) => {
    heard.resolve(payload);
    return Promise.resolve({ kind: 'done' });
  });
  await broker.emit('thing.happened', work(5), named());
  await broker.emit('nobody.cares', work(), named());
  t.is((await heard.promise).number, 5);
  await consumer.stop();
});

test('attempts climb the ladder, then the job is dead with its first and last error', async (t) => {
  const broker = await aBroker('ladder');
  const seen: { meta: Meta; at: number }[] = [];
  const consumer = await broker.consume(flaky, (_, meta): Promise<Outcome> => {
    seen.push({ meta, at: Date.now() });
    return Promise.resolve({ kind: 'retry', reason: `trouble ${meta.attempt}` });
  });
  const messageId = newId();
  await broker.publish(flaky, work(), { messageId, requestId: 'req-9' });
  const dead = await peek(t, 'test.flaky.dead');
  const headers = dead.properties.headers ?? {};
  t.deepEqual(
    seen.map(({ meta }) => [meta.attempt, meta.lastAttempt, meta.firstError]),
    [
      [1, false, undefined],
      [2, false, 'trouble 1'],
      [3, true, 'trouble 1'],
    ],
  );
  t.true((seen[1]?.at ?? 0) - (seen[0]?.at ?? 0) >= 990);
  t.true((seen[2]?.at ?? 0) - (seen[1]?.at ?? 0) >= 1_990);
  t.like(headers, {
    reason: 'attempts_exhausted',
    first_error: 'trouble 1',
    last_error: 'trouble 3',
    request_id: 'req-9',
    attempt: 3,
  });
  t.is(dead.properties.messageId, messageId);
  await consumer.stop();
});

test('a handler that throws is retried with its error redacted; malformed jobs are dead at once', async (t) => {
  const broker = await aBroker('poison');
  const consumer = await broker.consume(poison, () =>
    Promise.reject(new Error('code 123456 for +14155550123 failed')),
  );
  await broker.publish(poison, work(), named());
  const thrown = await peek(t, 'test.poison.dead');
  t.is(thrown.properties.headers?.first_error, 'Error: code *** for *** failed');
  await broker.publish(poison, { name: 1 } as unknown as Work, named());
  t.is((await peek(t, 'test.poison.dead')).properties.headers?.reason, 'malformed_payload');
  await consumer.stop();
});

test('an engine that is away costs no attempt and ignores the deadline', async (t) => {
  const broker = await aBroker('away');
  const attempts: number[] = [];
  const consumer = await broker.consume(patient, (_, { attempt }) => {
    attempts.push(attempt);
    return attempts.length < 4
      ? Promise.reject(new Away('away'))
      : Promise.resolve({ kind: 'done' });
  });
  await broker.publish(patient, work(), { ...named(), deadlineMs: Date.now() + 500 });
  await eventually(t, () => (attempts.length === 4 ? true : undefined));
  t.deepEqual(attempts, [1, 1, 1, 1]);
  await consumer.stop();
});

test('a job whose caller has left is not retried', async (t) => {
  const broker = await aBroker('deadline');
  const consumer = await broker.consume(late, () =>
    Promise.resolve({ kind: 'retry', reason: 'busy' }),
  );
  await broker.publish(late, work(), { ...named(), deadlineMs: Date.now() - 1 });
  t.is((await peek(t, 'test.late.dead')).properties.headers?.reason, 'deadline_passed');
  await consumer.stop();
});

test('stopping finishes what runs and gives back what was not begun', async (t) => {
  const broker = await aBroker('drain');
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  const consumer = await broker.consume(
    slow,
    async () => {
      begun++;
      await gate.promise;
      return { kind: 'done' };
    },
    { prefetch: 2 },
  );
  for (let number = 0; number < 5; number++) await broker.publish(slow, work(number), named());
  await eventually(t, () => (begun === 2 ? true : undefined));
  const stopped = consumer.stop();
  gate.resolve();
  await stopped;
  t.is(begun, 2);
  await eventually(t, async () =>
    (await broker.depth('test.slow')).ready === 3 ? true : undefined,
  );
});

test('a cut line: publishing says so at once, everything comes back, nothing is lost', async (t) => {
  const broker = await aBroker('cut');
  const seen = new Set<number>();
  const consumer = await broker.consume(cut, ({ number }) => {
    seen.add(number);
    return Promise.resolve({ kind: 'done' });
  });
  const publishes = Array.from({ length: 200 }, (_, number) =>
    broker.publish(cut, work(number), named()).then(
      () => number,
      (error: unknown) => {
        t.true(error instanceof OutcomeUnknown || error instanceof BrokerUnavailable);
        return undefined;
      },
    ),
  );
  await closeConnections('cut');
  const confirmed = (await Promise.all(publishes)).filter((number) => number !== undefined);
  await eventually(t, () => (broker.ready() ? undefined : true)).catch(() => undefined);
  await eventually(t, () => (broker.ready() ? true : undefined));
  await broker.publish(cut, work(1_000), named());
  await eventually(t, () => (seen.has(1_000) ? true : undefined));
  await eventually(t, () => (confirmed.every((number) => seen.has(number)) ? true : undefined));
  t.true(broker.stats().reconnects !== undefined);
  await consumer.stop();
});

// The topology: what the catalogue asks for, and that a broker has exactly that.
import test from 'ava';
import { topologyOf } from '../../../lib/infra/queue/topology.ts';
import type { Job } from '../../../lib/jobs.ts';
import { management } from './management.ts';
import { aJob, createRig, type Rig, until } from './rig.ts';

const mail = aJob('mail', { retrySeconds: [1, 5, 5], maxLength: 7, bindings: ['otp.*'] });
const bare = aJob('bare', { retrySeconds: [] });
const catalogue = [mail, bare] as unknown as Job[];

let rig: Rig;
test.before(async () => {
  rig = await createRig('topology');
});
test.after.always(() => rig?.close());

const argumentsOf = (name: string) =>
  topologyOf(catalogue).queues.find((queue) => queue.name === name)?.arguments;

test('each job has a fresh, an again and a dead queue, and one wait queue for each distinct delay', (t) => {
  t.deepEqual(
    topologyOf(catalogue).queues.map(({ name }) => name),
    [
      ...['mail', 'mail.again', 'mail.wait.1s', 'mail.wait.5s', 'mail.dead'],
      ...['bare', 'bare.again', 'bare.dead'],
    ],
  );
});

test('only the fresh queue has a length limit: what comes back always finds room', (t) => {
  const limited = topologyOf(catalogue).queues.filter((queue) => 'x-max-length' in queue.arguments);
  t.deepEqual(
    limited.map(({ name }) => name),
    ['mail', 'bare'],
  );
  t.is(argumentsOf('mail')?.['x-max-length'], 7);
  t.is(argumentsOf('mail')?.['x-overflow'], 'reject-publish');
});

test('dead letters are moved at least once: to the dead queue from work, to the again queue from a wait', (t) => {
  for (const name of ['mail', 'mail.again']) {
    t.like(argumentsOf(name), {
      'x-dead-letter-exchange': 'dead',
      'x-dead-letter-routing-key': 'mail',
      'x-dead-letter-strategy': 'at-least-once',
      'x-overflow': 'reject-publish',
      'x-delivery-limit': 20,
    });
  }
  t.like(argumentsOf('mail.wait.5s'), {
    'x-message-ttl': 5_000,
    'x-dead-letter-exchange': 'job',
    'x-dead-letter-routing-key': 'mail.again',
    'x-dead-letter-strategy': 'at-least-once',
    'x-overflow': 'reject-publish',
  });
});

test('a dead queue keeps its letters: no limit, no lifetime, looking never uses them up, and what is rejected is redriven', (t) => {
  t.deepEqual(argumentsOf('mail.dead'), {
    'x-queue-type': 'quorum',
    'x-delivery-limit': 1_000_000_000,
    'x-dead-letter-exchange': 'job',
    'x-dead-letter-routing-key': 'mail.again',
    'x-dead-letter-strategy': 'at-least-once',
    'x-overflow': 'reject-publish',
  });
});

test('a broker has exactly the queues, arguments and bindings of the catalogue', async (t) => {
  await rig.broker([mail, bare]);
  const planned = topologyOf(catalogue);
  // The list of the management API is a moment old.
  const durable = await until(async () => {
    const found = await management.queues(rig.vhost);
    const ours = found.filter(({ name }) => !name.startsWith('amq.gen'));
    return ours.length >= planned.queues.length ? ours : undefined;
  });
  t.deepEqual(
    Object.fromEntries(durable.map((queue) => [queue.name, queue.arguments])),
    Object.fromEntries(planned.queues.map((queue) => [queue.name, queue.arguments])),
  );
  const bindings = await management.bindings(rig.vhost);
  const own = bindings.filter(({ source }) => source !== '');
  const line = (queue: string, exchange: string, key: string) => `${exchange} ${key} ${queue}`;
  t.deepEqual(
    own.map(({ source, destination, routing_key: key }) => line(destination, source, key)).sort(),
    planned.bindings.map(({ queue, exchange, key }) => line(queue, exchange, key)).sort(),
  );
});

test('declaring again changes nothing, and a changed argument is refused without harm to what runs', async (t) => {
  const rig = await createRig('redeclare');
  t.teardown(rig.close);
  const same = aJob('same', { maxLength: 5 });
  const first = await rig.broker([same]);
  const second = await rig.broker([same]);
  t.true(second.ready());
  const other = await rig.broker([aJob('same', { maxLength: 6 })], { start: false });
  const started = other.start();
  await other.close();
  await t.throwsAsync(started, { name: 'BrokerUnavailable' });
  t.false(other.ready());
  t.true(first.ready());
});

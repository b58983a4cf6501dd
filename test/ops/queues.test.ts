// The queues and their dead letters over the ops listener: true figures, and orders that are on record.

import { connect } from 'amqplib';
import test from 'ava';
import { jobs, telegramUpdate } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { testUrl } from '../support/names.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;
let broker: Awaited<ReturnType<typeof connect>>;

test.before(async () => {
  stack = await startStack('opsqueues', { workers: [] });
  ops = await startOps(stack);
  broker = await connect(stack.config.amqpUrls);
});

test.after.always(async () => {
  await broker?.close();
  await ops?.close();
  await stack?.close();
});

const update = (number: number) => ({
  ...{ update_id: number, chat_id: 1, user_id: 1, kind: 'other' as const },
  ...{
    token_hash: null,
    contact: { phone: '+14155550123', user_id: 1, forwarded: false },
    language: null,
  },
});

const publish = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, n) =>
      stack.api.broker.publish(telegramUpdate, update(n), { messageId: newId() }),
    ),
  );

/** Puts dead letters of a job where a worker would put them. */
const bury = async (job: string, count: number, reason = 'attempts_exhausted'): Promise<void> => {
  const channel = await broker.createConfirmChannel();
  for (let number = 0; number < count; number++) {
    channel.publish('dead', job, Buffer.from(JSON.stringify(update(number))), {
      ...{ persistent: true, messageId: newId() },
      headers: {
        ...{ attempt: 6, first_published: Date.now() - 60_000, failed_at: Date.now() - 5_000 },
        ...{
          reason,
          first_error: 'first',
          last_error: 'last',
          queue: `${job}.again`,
          request_id: 'req',
        },
      },
    });
  }
  await channel.waitForConfirms();
  await channel.close();
};

const queueOf = async (job: string) =>
  (await ops.get('/ops/api/queues')).data.items.find((one: { job: string }) => one.job === job);

const ended = (t: Parameters<typeof eventually>[0], id: string) =>
  eventually(t, async () => {
    const { run } = (await ops.get(`/ops/api/runs/${id}`)).data;
    return run.status === 'running' ? undefined : run;
  });

test.serial('every job has its figures, and an empty broker shows zeros', async (t) => {
  const { data } = await ops.get('/ops/api/queues');
  t.deepEqual(
    data.items.map(({ job }: { job: string }) => job),
    jobs.map(({ name }) => name),
  );
  for (const one of data.items)
    t.like(one, { ready: 0, dead: 0, unacked: 0, consumers: 0, oldest_age_ms: 0 });
});

test.serial('under load the depth is the broker’s own at the same moment', async (t) => {
  const channel = await broker.createChannel();
  const depth = async () => (await channel.checkQueue('telegram.update')).messageCount;
  const load = (async () => {
    for (let round = 0; round < 20; round++) await publish(25);
  })();
  for (let look = 0; look < 10; look++) {
    const before = await depth();
    const { ready } = await queueOf('telegram.update');
    const after = await depth();
    t.true(ready >= before && ready <= after, `${before} ≤ ${ready} ≤ ${after}`);
  }
  await load;
  t.is((await queueOf('telegram.update')).ready, 500);
});

test.serial(
  'what is in hand and how old it is are told, by the processes or by the management API',
  async (t) => {
    const gate = Promise.withResolvers<void>();
    const consumer = await stack.worker.broker.consume(telegramUpdate, async () => {
      await gate.promise;
      return { kind: 'done' };
    });
    await stack.worker.heart.stop();
    stack.worker.heart.start();
    const busy = await eventually(t, async () => {
      const one = await queueOf('telegram.update');
      return one.unacked === 20 ? one : undefined;
    });
    t.like(busy, { ready: 480, consumers: 1 });
    await ops.app.figures.sample();

    const management = testUrl('TESSERA_TEST_RABBIT_MANAGEMENT_URL').href;
    const other = await startOps(stack, { brokerManagementUrl: management });
    const managed = await eventually(
      t,
      async () => {
        const { data } = await other.get('/ops/api/queues');
        const one = data.items.find(({ job }: { job: string }) => job === 'telegram.update');
        return data.source === 'management' && one.unacked === 20 ? one : undefined;
      },
      20_000,
    );
    t.is(managed.ready, 480);
    await other.close();

    gate.resolve();
    await eventually(t, async () =>
      (await queueOf('telegram.update')).ready === 0 ? true : undefined,
    );
    await consumer.stop();
  },
);

test.serial('the last hour is kept in Redis, in columns, and survives the process', async (t) => {
  await ops.app.figures.sample();
  const first = (await ops.get('/ops/api/queues/history')).data;
  t.is(first.step_ms, 5_000);
  t.true(first.at.length >= 1);
  t.is(first.jobs['telegram.update'].ready.length, first.at.length);
  const other = await startOps(stack);
  t.true((await other.get('/ops/api/queues/history?span=hour')).data.at.length >= first.at.length);
  t.true((await other.get('/ops/api/queues/history?span=day')).data.at.length >= 1);
  t.is((await other.get('/ops/api/queues/history?span=year')).status, 400);
  await other.close();
});

test.serial(
  'dead letters are listed with reason, attempts, errors, age and a masked payload',
  async (t) => {
    await bury('billing.charge', 3);
    await bury('billing.charge', 2, 'malformed_payload');
    const { data } = await ops.get('/ops/api/dead/billing.charge');
    t.like(data, { total: 5, reasons: { attempts_exhausted: 3, malformed_payload: 2 } });
    t.like(data.items[0], {
      attempts: 6,
      first_error: 'first',
      last_error: 'last',
      queue: 'billing.charge.again',
    });
    t.true(data.items[0].age_ms >= 5_000 && data.items[0].age_ms < 60_000);
    t.is(data.items[0].payload.contact.phone, '+1415*****23');
    t.notRegex(JSON.stringify(data), /4155550123/);
    const some = (await ops.get('/ops/api/dead/billing.charge?reason=malformed_payload&limit=1'))
      .data;
    t.is(some.items.length, 1);
    t.is((await queueOf('billing.charge')).dead, 5);
    t.is((await ops.get('/ops/api/dead/no.such')).status, 400);
  },
);

test.serial(
  'one is redriven, then those of a reason, then all; the audit log has who, what and how many',
  async (t) => {
    const { items } = (await ops.get('/ops/api/dead/billing.charge')).data;
    const [one] = items;
    const begun = await ops.post('/ops/api/dead/billing.charge/redrive', { ids: [one.id] });
    t.is(begun.status, 200, begun.text);
    t.like(await ended(t, begun.data.run.id), {
      status: 'done',
      affected: 1,
      actor: 'Tester',
      action: 'dead.redrive',
      subject: 'billing.charge',
    });
    const second = await ops.post('/ops/api/dead/billing.charge/redrive', {
      reason: 'malformed_payload',
    });
    t.like(await ended(t, second.data.run.id), { status: 'done' });
    const third = await ops.post('/ops/api/dead/billing.charge/redrive');
    await ended(t, third.data.run.id);
    t.like(await queueOf('billing.charge'), { dead: 0, again: 5 });
    const log = (await ops.get('/ops/api/audit?subject=billing.charge&limit=2')).data;
    t.is(log.items.length, 2);
    const rest = (await ops.get(`/ops/api/audit?subject=billing.charge&before=${log.next_before}`))
      .data;
    const all = [...log.items, ...rest.items];
    t.is(
      all.reduce((sum: number, { affected }: { affected: number }) => sum + affected, 0),
      5,
    );
  },
);

test.serial('a purge wants the name repeated, and is on record', async (t) => {
  await bury('analytics.rollup', 4);
  for (const confirm of [undefined, 'yes', 'billing.charge']) {
    t.is((await ops.post('/ops/api/dead/analytics.rollup/purge', { confirm })).status, 400);
  }
  t.is((await queueOf('analytics.rollup')).dead, 4);
  const begun = await ops.post('/ops/api/dead/analytics.rollup/purge', {
    confirm: 'analytics.rollup',
    most: 3,
  });
  t.like(await ended(t, begun.data.run.id), { status: 'done', affected: 3, action: 'dead.purge' });
  t.like(await queueOf('analytics.rollup'), { dead: 1, again: 0 });
});

test.serial('an order runs at its rate, alone, and can be stopped', async (t) => {
  await bury('webhook.dispatch', 200);
  const begun = await ops.post('/ops/api/dead/webhook.dispatch/redrive', { per_second: 20 });
  const second = await ops.post('/ops/api/dead/webhook.dispatch/redrive', {});
  t.is(second.status, 400);
  await eventually(t, async () =>
    (await ops.get(`/ops/api/runs/${begun.data.run.id}`)).data.run.affected > 5 ? true : undefined,
  );
  t.is((await ops.post(`/ops/api/runs/${begun.data.run.id}/stop`)).status, 200);
  const run = await ended(t, begun.data.run.id);
  t.is(run.status, 'stopped');
  const { dead, again } = await eventually(t, async () => {
    const seen = await queueOf('webhook.dispatch');
    return seen.dead + seen.again === 200 ? seen : undefined;
  });
  t.is(dead, 200 - run.affected);
  t.is(again, run.affected);
  t.is((await ops.post(`/ops/api/runs/${newId()}/stop`)).status, 404);
  const log = (await ops.get('/ops/api/audit?action=dead.stop&limit=1')).data.items;
  t.like(log[0], { actor: 'Tester', subject: 'webhook.dispatch', status: 'done' });
  t.deepEqual(log[0].detail, { run: begun.data.run.id });
  t.is((await ops.post(`/ops/api/runs/${begun.data.run.id}/stop`)).status, 404);
});

test.serial('an order of another ops process can be stopped too', async (t) => {
  const other = await startOps(stack);
  const begun = await other.post('/ops/api/dead/webhook.dispatch/redrive', { per_second: 5 });
  t.is((await ops.post(`/ops/api/runs/${begun.data.run.id}/stop`)).status, 200);
  const run = await ended(t, begun.data.run.id);
  t.is(run.status, 'stopped');
  t.true(run.affected < 50, String(run.affected));
  await other.close();
});

test.serial('an order that names letters which are not there says so', async (t) => {
  const begun = await ops.post('/ops/api/dead/webhook.dispatch/redrive', {
    ids: ['0123456789abcdef'],
  });
  t.like(await ended(t, begun.data.run.id), {
    ...{ status: 'done', affected: 0, error: '1 of 1 named letters were not there' },
  });
});

// What machines ask the ops listener: metrics of every process, liveness and readiness, also while an engine is away.
import test from 'ava';
import { whatsappStatus } from '../../lib/jobs.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { promtoolPath, promtoolSays } from '../support/promtool.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let ops: Ops;

test.before(async () => {
  stack = await startStack('probes', { cuttable: true });
  ops = await startOps(stack);
});

test.after.always(async () => {
  await ops?.close();
  await stack?.close();
});

test.serial('/metrics has the figures of every process, by process', async (t) => {
  const { live } = await stack.customer();
  t.is((await live.send(stack.phone().number)).status, 200);
  const page = await eventually(t, async () => {
    const { text } = await ops.get('/metrics');
    const told = ['http_request_duration_seconds_count', 'sends_total'].every((name) =>
      new RegExp(`tessera_${name}\\{[^}]*process="(api|workers)@`).test(text),
    );
    return told ? text : undefined;
  });
  for (const name of ['api', 'workers', 'ops']) {
    t.regex(
      page,
      new RegExp(`tessera_process_up\\{process="${name}@[^"]+:${process.pid}"\\} 1\\n`),
    );
  }
  t.regex(page, /tessera_http_request_duration_seconds_count\{[^}]*process="api@/);
  const { headers } = await ops.get('/metrics');
  t.regex(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
});

test.serial('the depth of every queue is what the broker says of it', async (t) => {
  await stack.stopWorkers('whatsapp');
  const { accountId } = await stack.customer();
  const update = { receipts: [], due: [accountId], news: [] };
  for (const messageId of ['one', 'two', 'three']) {
    await stack.api.broker.publish(whatsappStatus, update, { messageId });
  }
  const { ready } = await stack.api.broker.depth('whatsapp.status');
  t.is(ready, 3);
  const { text } = await ops.get('/metrics');
  t.regex(text, /tessera_queue_depth\{queue="whatsapp.status",part="fresh"\} 3\n/);
  t.regex(text, /tessera_queue_depth\{queue="whatsapp.status",part="dead"\} 0\n/);
  t.regex(text, /tessera_queue_consumers\{queue="whatsapp.send"\} 0\n/);
  t.regex(text, /tessera_queue_consumers\{queue="billing.charge"\} 1\n/);
  t.regex(text, /tessera_queue_oldest_age_seconds\{queue="whatsapp.status"\} \d/);
  await stack.startWorkers('whatsapp');
});

(promtoolPath() ? test.serial : test.serial.skip)(
  'promtool check metrics finds nothing to say about the page',
  async (t) => {
    t.is(promtoolSays(['metrics'], (await ops.get('/metrics')).text), '');
  },
);

test.serial(
  'a limit that is decided without Redis is counted, and so is the loss of the engine',
  async (t) => {
    const { live } = await stack.customer();
    const sent = await live.send(stack.phone().number);
    const before = await stack.api.metrics.registry.metrics();
    t.notRegex(before, /tessera_redis_failopen_total\{limit="status_message"\} [1-9]/);
    stack.lines?.redis.cut();
    await live.get(`/v1/otp/status/${sent.data.message_id}`);
    stack.lines?.redis.mend();
    const after = await stack.api.metrics.registry.metrics();
    t.regex(after, /tessera_redis_failopen_total\{limit="status_message"\} 1\n/);
    t.regex(after, /tessera_outages_total\{engine="redis"\} 1\n/);
    await eventually(t, () => (stack.api.redis.isReady() ? true : undefined));
  },
);

test.serial('an engine that is away ends readiness and leaves liveness alone', async (t) => {
  await eventually(t, async () => ((await ops.get('/ready')).status === 200 ? true : undefined));
  stack.lines?.redis.cut();
  const down = await eventually(t, async () => {
    const answer = await ops.get('/ready');
    return answer.status === 503 ? answer : undefined;
  });
  t.like(down.data, { status: 'down', engines: { redis: 'down', mysql: 'ok' } });
  t.like(await ops.get('/live'), { status: 200, data: { status: 'ok' } });
  // Of the others nothing is known now; what is wrong is said all the same.
  const { status, text } = await ops.get('/metrics');
  t.is(status, 200);
  t.regex(text, /tessera_engine_connected\{engine="redis",process="ops@[^"]+"\} 0\n/);
  t.notRegex(text, /process="workers@/);
  stack.lines?.redis.mend();
  await eventually(t, async () => ((await ops.get('/ready')).status === 200 ? true : undefined));
});

test.serial('a process that was told to end is not ready any more', async (t) => {
  ops.app.activity.stopping = true;
  t.like(await ops.get('/ready'), { status: 503, data: { status: 'stopping' } });
  t.is((await ops.get('/live')).status, 200);
  ops.app.activity.stopping = false;
});

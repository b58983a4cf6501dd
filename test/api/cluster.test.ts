// The product over a Redis Cluster of two nodes: no key of a step lies in another slot, and nothing else changes.
import test from 'ava';
import { startRedisCluster, type TestCluster } from '../support/redis-cluster.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let cluster: TestCluster;
let stack: Stack;
let customer: Customer;

test.before(async () => {
  cluster = await startRedisCluster(2);
  stack = await startStack('cluster', { redisUrl: cluster.url });
  customer = await stack.customer();
});
test.after.always(async () => {
  await stack?.close();
  await cluster?.stop();
});

test('codes are sent, verified and limited', async (t) => {
  const phone = stack.phone();
  t.is((await customer.live.send(phone.number, { 'Idempotency-Key': 'one' })).status, 200);
  const replayed = await customer.live.send(phone.number, { 'Idempotency-Key': 'one' });
  t.is(replayed.headers.get('idempotent-replayed'), 'true');
  t.is((await customer.live.send(phone.number)).error.code, 'RATE_LIMIT_EXCEEDED');
  t.is((await customer.live.verify(phone.number, '000000')).error.attempts_remaining, 4);
  t.is((await customer.live.verify(phone.number, await phone.code())).status, 200);
});

test('links are issued, redeemed and used', async (t) => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_async' });
  const refused = await customer.live.send(phone.number);
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED');
  await phone.tap(refused.error.telegram_bot_url);
  const code = await eventually(t, async () => (await phone.code()) || undefined);
  await eventually(t, async () =>
    (await customer.live.verify(phone.number, code)).status === 200 ? true : undefined,
  );
  t.is((await customer.live.send(phone.number)).status, 200);
});

test('the processes report themselves', async (t) => {
  const pulses = await eventually(t, async () => {
    const found = await stack.api.pulses.readPulses();
    return found.length === 2 ? found : undefined;
  });
  t.deepEqual(
    pulses.map(({ name, state }) => `${name} ${state}`),
    ['api alive', 'workers alive'],
  );
});

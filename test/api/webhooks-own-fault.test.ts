// A fault of our own network: seen by whom it hits, charged to nobody, and nothing is lost.
import test from 'ava';
import { second } from '../../lib/kernel/clock.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { deliveriesOf, listenAt, receive, sendTest, typeOf } from '../support/receivers.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*', WEBHOOK_TIMEOUT_MS: '1000' };
  stack = await startStack('webhooks_own_fault', { clock, settings });
});
test.after.always(() => stack?.close());

const webhookOf = async ({ live }: Customer) =>
  (await live.get('/v1/clients/me')).data.webhook as Record<string, unknown>;

/** Lets something happen to the account; answers its delivery when it has been attempted. */
const attemptSomething = async (
  t: Parameters<typeof eventually>[0],
  customer: Customer,
): Promise<string> => {
  await customer.test.send('+14155550100');
  const item = await eventually(t, async () =>
    (await deliveriesOf(customer, 'type=otp.sent', 'test')).find(({ attempts }) => attempts === 1),
  );
  return item.id;
};

test.serial('when all receivers fall silent together, it is us', async (t) => {
  const customers = await Promise.all(Array.from({ length: 6 }, () => stack.customer()));
  for (const customer of customers) {
    const receiver = await receive();
    await listenAt(stack, customer, receiver.url);
    await sendTest(customer.live);
    await eventually(t, () => receiver.calls[0]);
    await eventually(
      t,
      async () => (await deliveriesOf(customer))[0]?.status === 'delivered' || undefined,
    );
    receiver.close();
  }
  for (const customer of customers.slice(0, 5)) await attemptSomething(t, customer);
  const [first, last] = [customers[0], customers[5]];
  if (!first || !last) return t.fail();
  const id = await attemptSomething(t, last);

  t.is((await webhookOf(first)).status, 'failing', 'one alone is its own trouble');
  t.is((await webhookOf(last)).status, 'active', 'ours is charged to nobody');
  const { data } = await last.test.get(`/v1/clients/webhooks/deliveries/${id}`);
  t.like(data, {
    status: 'pending',
    attempts: [{ number: 1, status: null, reason: 'our_network' }],
  });
  const waitMs = Date.parse(String(data.next_attempt_at)) - clock.now();
  t.true(waitMs > 10 * second && waitMs < 40 * second, `${waitMs} ms`);
  const stored = await stack.api.webhooks.find(last.accountId, id);
  t.is(stored?.tries, 0, 'the schedule stands where it stood');

  const back = await receive();
  await listenAt(stack, last, back.url);
  clock.forward(40 * second);
  await eventually(t, () => back.calls.some((call) => typeOf(call) === 'otp.sent') || undefined);
  back.close();
});

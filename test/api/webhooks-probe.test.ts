// An endpoint that was given up: its owner hears of it before, and it is asked once a day whether it answers again.
import test from 'ava';
import sinon from 'sinon';
import { day, minute, second } from '../../lib/kernel/clock.ts';
import { idBytes } from '../../lib/kernel/ids.ts';
import { probeOnce } from '../../lib/webhooks/probe.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { deliveriesOf, idOf, listenAt, receive, sendTest } from '../support/receivers.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*', WEBHOOK_TIMEOUT_MS: '1000' };
  stack = await startStack('webhooks_probe', { clock, settings });
});
test.after.always(() => stack?.close());

const webhookOf = async ({ accountId }: Customer) => {
  const session = await stack.sessionOf(accountId);
  return (await session.get('/v1/clients/me')).data.webhook as Record<string, unknown>;
};

/** An account with two events held behind an endpoint that was given up a moment ago. */
const givenUp = async (
  t: Parameters<typeof eventually>[0],
  url: string,
  reason: 'failing' | 'gone',
) => {
  const customer = await stack.customer();
  const { accountId } = customer;
  await listenAt(stack, customer, url);
  const endpoint = await stack.api.webhooks.endpoint(accountId);
  if (!endpoint) throw new Error('no address is set');
  await stack.api.webhooks.disable(endpoint, clock.now(), reason);
  const ids = [await sendTest(customer.live), await sendTest(customer.live)];
  const held = await eventually(t, async () => {
    const found = await deliveriesOf(customer, 'status=held');
    return found.length === 2 ? found : undefined;
  });
  return { customer, ids, oldest: held.at(-1)?.id ?? '' };
};

const probe = () => probeOnce({ ...stack.worker, clock });

test.serial('the owner sees what fails, and from when on it will be disabled', async (t) => {
  const customer = await stack.customer();
  await listenAt(stack, customer, 'http://127.0.0.1:9/');
  t.like(await webhookOf(customer), { failures: 0, disables_at: null, disabled_at: null });
  const since = clock.now();
  const endpoint = await stack.api.webhooks.endpoint(customer.accountId);
  if (!endpoint) return t.fail();
  await stack.api.webhooks.noteFailures([{ ...endpoint, value: 7 }], since);
  t.like(await webhookOf(customer), {
    ...{ status: 'failing', failures: 7, disabled_at: null },
    disables_at: new Date(since + 5 * day).toISOString(),
  });
});

test.serial('one event a day is tried, and when it is taken all the others follow', async (t) => {
  let open = false;
  const receiver = await receive((response) => response.writeHead(open ? 200 : 500).end());
  const { customer, ids, oldest } = await givenUp(t, receiver.url, 'failing');
  await probe();
  t.is(receiver.calls.length, 0, 'not on the first day');
  clock.forward(day + minute);
  await probe();
  await probe();
  t.deepEqual(receiver.calls.map(idOf), ids.slice(0, 1), 'one, the oldest, once');
  const path = `/v1/clients/webhooks/deliveries/${oldest}`;
  const { data } = await (await stack.sessionOf(customer.accountId)).get(path);
  t.like(data, { status: 'held', attempts: [{ number: 1, status: 500, reason: 'status' }] });
  t.is((await webhookOf(customer)).status, 'disabled');
  open = true;
  clock.forward(day + minute);
  await probe();
  t.is((await webhookOf(customer)).status, 'active');
  await eventually(t, () => new Set(receiver.calls.map(idOf)).size === 2 || undefined);
  await eventually(t, async () => {
    const all = await stack.api.db('webhook_deliveries').where({
      account_id: idBytes(customer.accountId),
      status: 'delivered',
    });
    return all.length === 2 || undefined;
  });
  receiver.close();
});

test.serial('an endpoint that said it is gone is not called again', async (t) => {
  const receiver = await receive();
  const { customer } = await givenUp(t, receiver.url, 'gone');
  clock.forward(2 * day);
  await probe();
  t.is(receiver.calls.length, 0);
  t.is((await webhookOf(customer)).status, 'disabled');
  receiver.close();
});

test.serial(
  'of several workers one probes, and what was released meanwhile stays so',
  async (t) => {
    const receiver = await receive(async (response, call) => {
      // While the probe is under way, its owner sets the address again.
      if (call === 1) await stack.api.webhooks.enable(customer.accountId, clock.now());
      response.writeHead(500).end();
    });
    const { customer, ids } = await givenUp(t, receiver.url, 'failing');
    clock.forward(day + minute);
    await Promise.all([probe(), probe(), probe()]);
    const times = (id: string | undefined) =>
      receiver.calls.map(idOf).filter((each) => each === id).length;
    await eventually(t, () => times(ids[0]) === 2 || undefined);
    await eventually(t, () => times(ids[1]) === 1 || undefined);
    t.deepEqual(await deliveriesOf(customer, 'status=held'), [], 'nothing stays held behind it');
    receiver.close();
  },
);

test.serial(
  'an endpoint whose end MySQL did not take is asked again, and not silenced unseen',
  async (t) => {
    const customer = await stack.customer();
    const gone = await receive((response) => response.writeHead(410).end());
    await listenAt(stack, customer, gone.url);
    const disable = sinon.stub(stack.worker.webhooks, 'disable').rejects(new Error('away'));
    await sendTest(customer.live);
    await eventually(t, () => disable.called || undefined);
    disable.restore();
    // Its lease ends, it is put to wait, and then there is an attempt again.
    const disabled = await eventually(t, async () => {
      clock.forward(20 * second);
      const state = await stack.api.webhooks.endpointState(customer.accountId);
      return state?.disabledReason ?? undefined;
    });
    t.is(disabled, 'gone');
    t.is(gone.calls.length, 2);
    gone.close();
  },
);

// The timeline of a message over HTTP: every step it took, from the call to the webhooks, whichever way it went.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { ownerChange } from '../support/acts.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let hookUrl: string;
const receiver = createServer((request, response) => {
  request.resume();
  response.end();
});

test.before(async () => {
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  hookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  stack = await startStack('timeline', { settings: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*' } });
});
test.after.always(async () => {
  await stack?.close();
  receiver.closeAllConnections();
  receiver.close();
});

type Step = {
  at: string;
  type: string;
  channel: string | null;
  reason: string | null;
  attempt: number | null;
  amount: number | null;
  event: string | null;
  http_status: number | null;
};

const timelineOf = async ({ live }: Customer, id: unknown): Promise<Step[]> =>
  (await live.get(`/v1/clients/otps/${id}/timeline`)).data.steps as Step[];

const short = (steps: readonly Step[]): string[] =>
  steps
    .filter(({ event }) => event === null)
    .map(({ type, channel }) => `${type} ${channel ?? ''}`.trim());

const told = (steps: readonly Step[]): (string | null)[] =>
  steps.flatMap(({ type, event }) => (type === 'webhook.delivered' ? [event] : []));

const aCustomer = async (): Promise<Customer> => {
  const customer = await stack.customer();
  await stack.api.accounts.change(customer.accountId, { webhookUrl: hookUrl }, ownerChange);
  await stack.api.ledger.setPlan(customer.accountId, 'trial', 'pay_per_success');
  await stack.api.revocations.announce();
  return customer;
};

test('a message that was verified shows every step, its charge and its webhooks', async (t) => {
  const customer = await aCustomer();
  const phone = stack.phone();
  const { data } = await customer.live.send(phone.number);
  await customer.live.verify(phone.number, await phone.code());
  const steps = await eventually(t, async () => {
    const found = await timelineOf(customer, data.message_id);
    return told(found).length >= 4 && short(found).length >= 8 ? found : undefined;
  });
  // A receipt has whole seconds and another clock: where delivered stands among the others is not ours to say.
  const own = short(steps).filter((step) => step !== 'otp.delivered whatsapp');
  t.deepEqual(own, [
    ...['otp.requested', 'queued whatsapp', 'claimed whatsapp', 'provider.accepted whatsapp'],
    ...['otp.sent whatsapp', 'otp.verified whatsapp', 'charged'],
  ]);
  t.true(short(steps).includes('otp.delivered whatsapp'));
  t.deepEqual(told(steps).toSorted(), [
    'otp.completed',
    'otp.delivered',
    'otp.sent',
    'otp.verified',
  ]);
  t.like(
    steps.find(({ type }) => type === 'charged'),
    { amount: -0.05 },
  );
  t.like(
    steps.find(({ type }) => type === 'webhook.delivered'),
    { http_status: 200, attempt: 1 },
  );
  t.deepEqual(
    steps,
    steps.toSorted((one, other) => (one.at < other.at ? -1 : Number(one.at > other.at))),
  );
});

test('a message that fell back shows why, and both channels', async (t) => {
  const customer = await aCustomer();
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'unreachable_sync' });
  const refused = await customer.live.send(phone.number);
  t.is(refused.error.code, 'CHANNEL_NOT_LINKED');
  await phone.tap(refused.error.telegram_bot_url);
  const items = await eventually(t, async () => {
    const { data } = await customer.live.get('/v1/clients/otps/recent');
    const found = data.items as { message_id: string; channel: string | null }[];
    return found.some(({ channel }) => channel === 'telegram') ? found : undefined;
  });
  const failed = items.find(({ channel }) => channel === null);
  const stepsOfFailed = await eventually(t, async () => {
    const steps = await timelineOf(customer, failed?.message_id);
    return steps.some(({ type }) => type === 'otp.failed') ? steps : undefined;
  });
  t.deepEqual(short(stepsOfFailed), [
    ...['otp.requested', 'queued whatsapp', 'claimed whatsapp', 'provider.failed whatsapp'],
    'otp.failed',
  ]);
  t.is(stepsOfFailed.find(({ type }) => type === 'provider.failed')?.reason, 'not_on_channel');

  // Linked now, and WhatsApp refuses again: the same send goes over Telegram.
  const next = stack.phone();
  const link = await customer.live.post('/v1/otp/telegram-link', { phone: next.number });
  await next.tap(link.data.telegram_bot_url);
  await next.behave({ whatsapp: 'unreachable_sync' });
  const { data } = await customer.live.send(next.number);
  const steps = await eventually(t, async () => {
    const found = await timelineOf(customer, data.message_id);
    return found.some(({ type }) => type === 'otp.delivered') ? found : undefined;
  });
  t.deepEqual(short(steps), [
    ...['otp.requested', 'queued whatsapp', 'claimed whatsapp', 'provider.failed whatsapp'],
    ...['fallback telegram', 'queued telegram', 'claimed telegram', 'provider.accepted telegram'],
    ...['otp.sent telegram', 'otp.delivered telegram'],
  ]);
  t.is(steps.find(({ type }) => type === 'fallback')?.reason, 'not_on_channel');
});

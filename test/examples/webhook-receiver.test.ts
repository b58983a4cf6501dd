// The webhook receiver: takes what Tessera sends once each, and nothing else.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { Webhook } from 'standardwebhooks';
import { createReceiver, type TesseraEvent } from '../../examples/webhook-receiver/receiver.ts';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { ownerChange } from '../support/acts.ts';
import { serveExample } from '../support/run-example.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('examples_hook', { settings: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*' } });
});
test.after.always(() => stack?.close());

/** Points an account at a receiver, past the https rule that a receiver on loopback cannot keep. */
const listenAt = async ({ accountId }: Customer, url: string): Promise<void> => {
  await stack.api.accounts.change(accountId, { webhookUrl: url }, ownerChange);
  await stack.api.webhooks.enable(accountId, Date.now());
  await stack.api.revocations.announce();
};

test('run as a program, it prints every event of a message once', async (t) => {
  const customer = await stack.customer();
  const [secret = ''] = await signingSecrets(stack.api, customer.accountId);
  const program = ['node', 'examples/webhook-receiver/receiver.ts'] as [string, string];
  const receiver = await serveExample(program, { WEBHOOK_SECRET: secret });
  t.teardown(receiver.stop);
  const url = `http://127.0.0.1:${receiver.port}/`;
  await listenAt(customer, url);
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number);
  await customer.live.verify(phone.number, await phone.code());
  await eventually(t, () => (receiver.lines.length >= 5 ? true : undefined));
  const types = ['otp.completed', 'otp.delivered', 'otp.sent', 'otp.verified'];
  t.deepEqual(
    receiver.lines.slice(1).toSorted(),
    types.map((type) => `${type} ${sent.data.message_id}`),
  );
});

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
const event: TesseraEvent = {
  id: 'evt_1',
  type: 'otp.sent',
  timestamp: '2026-11-21T08:00:00.000Z',
  mode: 'live',
  data: { message_id: 'msg_1' },
};

const serve = async (accept: (event: TesseraEvent) => Promise<void> | void) => {
  const server: Server = createServer(createReceiver({ secret, accept })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const post = async (body: string, headers: Record<string, string>) =>
    (await fetch(url, { method: 'POST', body, headers })).status;
  return { url, post, close: () => server.close() };
};

const signed = (body: string, at = new Date(), by = secret): Record<string, string> => ({
  'webhook-id': 'evt_1',
  'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
  'webhook-signature': new Webhook(by).sign('evt_1', at, body),
});

test('an event that comes again is taken once', async (t) => {
  const taken: TesseraEvent[] = [];
  const { post, close } = await serve((one) => void taken.push(one));
  t.teardown(close);
  const body = JSON.stringify(event);
  t.deepEqual(await Promise.all([1, 2, 3].map(() => post(body, signed(body)))), [204, 204, 204]);
  t.deepEqual(taken, [event]);
});

test('an event that could not be taken is asked for again', async (t) => {
  let times = 0;
  const { post, close } = await serve(() => {
    times += 1;
    if (times === 1) throw new Error('the database is down');
  });
  t.teardown(close);
  const body = JSON.stringify(event);
  t.is(await post(body, signed(body)), 500);
  t.is(await post(body, signed(body)), 204);
  t.is(times, 2);
});

test('what Tessera did not sign, or signed long ago, is refused', async (t) => {
  const { url, post, close } = await serve(() => t.fail('nothing was to be taken'));
  t.teardown(close);
  const body = JSON.stringify(event);
  const other = `whsec_${Buffer.from('another secret of 24 byte').toString('base64')}`;
  t.is(await post(body, {}), 400);
  t.is(await post(`${body} `, signed(body)), 400, 'the bytes count');
  t.is(await post(body, signed(body, new Date(), other)), 400);
  t.is(await post(body, signed(body, new Date(Date.now() - 6 * 60_000))), 400);
  t.is(await post('x'.repeat(5_000_000), {}), 413);
  t.is((await fetch(url)).status, 405);
});

// Webhooks end to end: signed deliveries that the standard package takes, retries, slow neighbours, and their owner's view.
import test from 'ava';
import { Webhook } from 'standardwebhooks';
import { signingSecrets } from '../../lib/accounts/webhook-secret.ts';
import { createHandClock } from '../support/hand-clock.ts';
import {
  deliveriesOf as deliveries,
  listenAt as pointAt,
  receive,
  typeOf,
  verifyDelivery,
} from '../support/receivers.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
const clock = createHandClock();

test.before(async () => {
  const settings = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1=*', WEBHOOK_TIMEOUT_MS: '3000' };
  stack = await startStack('webhooks', { clock, settings });
});
test.after.always(() => stack?.close());

const listenAt = (customer: Customer, url: string) => pointAt(stack, customer, url);

test.serial(
  'what happens to a message arrives, signed, once per event, with its summary',
  async (t) => {
    const receiver = await receive();
    const customer = await stack.customer();
    await listenAt(customer, receiver.url);
    const phone = stack.phone();
    const sent = await customer.live.send(phone.number);
    const code = await phone.code();
    await customer.live.verify(phone.number, code);
    await eventually(t, () => (receiver.calls.length >= 4 ? true : undefined));
    t.deepEqual(receiver.calls.map(typeOf).sort(), [
      ...['otp.completed', 'otp.delivered', 'otp.sent', 'otp.verified'],
    ]);
    const secrets = await signingSecrets(stack.api, customer.accountId);
    const secret = secrets[0] ?? '';
    for (const { headers, body } of receiver.calls) {
      const plain = headers as Record<string, string>;
      const event = new Webhook(secret).verify(body, plain) as { id: string; data: object };
      t.is(event.id, plain['webhook-id'] ?? '');
      t.like(event.data, { message_id: sent.data.message_id, phone: phone.number });
      t.false(body.includes(code), 'never the code');
    }
    const summary = receiver.calls.find((call) => typeOf(call) === 'otp.completed')?.body ?? '{}';
    t.like((JSON.parse(summary) as { data: object }).data, {
      status: 'verified',
      channel: 'whatsapp',
      // One of the free verifications.
      cost: 0,
    });
    t.is(new Set(receiver.calls.map(({ headers }) => headers['webhook-id'])).size, 4);
    receiver.close();
  },
);

test.serial('receivers of these tests take nothing that is not signed', async (t) => {
  const receiver = await receive();
  const [customer, other] = [await stack.customer(), await stack.customer()];
  await listenAt(customer, receiver.url);
  await customer.live.post('/v1/clients/webhooks/test', undefined);
  const call = await eventually(t, () => receiver.calls[0]);
  await verifyDelivery(receiver.url, call);
  const forged = [
    { ...call, body: `${call.body} ` },
    { ...call, headers: { ...call.headers, 'webhook-id': 'evt_other' } },
    { ...call, headers: { ...call.headers, 'webhook-timestamp': '1' } },
    { ...call, headers: { ...call.headers, 'webhook-signature': '' } },
  ];
  for (const one of forged) await t.throwsAsync(verifyDelivery(receiver.url, one));
  const elsewhere = 'http://127.0.0.1:9/other';
  await listenAt(other, elsewhere);
  await t.throwsAsync(verifyDelivery(elsewhere, call), undefined, 'by another account');
  receiver.close();
});

test.serial('after a rotation both secrets sign, whatever a worker remembers', async (t) => {
  const receiver = await receive();
  const customer = await stack.customer();
  await listenAt(customer, receiver.url);
  const epoch = () => stack.worker.revocations.epoch(customer.accountId);
  // Each rotation is an event of its own.
  const tests = () => receiver.calls.filter((call) => typeOf(call) === 'webhook.test');
  for (const round of [1, 2, 3]) {
    await customer.live.post('/v1/clients/webhooks/test', undefined);
    await eventually(t, () => tests()[2 * round - 2]);
    const known = epoch();
    await customer.live.post('/v1/clients/webhook-secret/rotate', undefined);
    await eventually(t, () => (epoch() !== undefined && epoch() !== known) || undefined);
    await customer.live.post('/v1/clients/webhooks/test', undefined);
    const call = await eventually(t, () => tests()[2 * round - 1]);
    const secrets = await signingSecrets(stack.api, customer.accountId);
    t.is(secrets.length, 2);
    t.is(String(call.headers['webhook-signature']).split(' ').length, 2);
    for (const secret of secrets) {
      t.like(new Webhook(secret).verify(call.body, call.headers as Record<string, string>), {
        type: 'webhook.test',
      });
    }
  }
  receiver.close();
});

test.serial(
  'a failing endpoint is tried again with the same id, and its owner sees every attempt',
  async (t) => {
    const receiver = await receive((response, call) => {
      response.statusCode = call === 1 ? 500 : 204;
      response.end();
    });
    const customer = await stack.customer();
    await listenAt(customer, receiver.url);
    const asked = await customer.live.post('/v1/clients/webhooks/test', undefined);
    await eventually(t, async () => {
      const [first] = await deliveries(customer);
      return first?.attempts === 1 ? true : undefined;
    });
    const [waiting] = await deliveries(customer);
    t.like(waiting, { event_id: asked.data.event_id, type: 'webhook.test', status: 'pending' });
    t.truthy(waiting?.next_attempt_at);
    clock.forward(6_000);
    await eventually(t, async () => {
      const [first] = await deliveries(customer);
      return first?.status === 'delivered' ? true : undefined;
    });
    t.is(new Set(receiver.calls.map(({ headers }) => headers['webhook-id'])).size, 1);
    const path = `/v1/clients/webhooks/deliveries/${waiting?.id}`;
    const one = (await customer.session.get(path)).data;
    t.deepEqual(
      (one.attempts as Record<string, unknown>[]).map(({ number, status, reason }) => [
        number,
        status,
        reason,
      ]),
      [
        [1, 500, 'status'],
        [2, 204, null],
      ],
    );
    const going = { status: 'pending', disabled_reason: null };
    t.like((await customer.live.post(`${path}/redeliver`, undefined)).data, going);
    await eventually(t, () => (receiver.calls.length === 3 ? true : undefined));
    t.is(receiver.calls[2]?.headers['webhook-id'], String(asked.data.event_id));
    receiver.close();
  },
);

test.serial('each way to fail has its reason, and ends at the deadline', async (t) => {
  const never = await receive(() => undefined);
  const dripping = await receive((response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write('x'), 100);
    response.on('close', () => clearInterval(timer));
  });
  const huge = await receive((response) => {
    response.writeHead(200);
    response.write(Buffer.alloc(5_000_000));
    response.end();
  });
  const resetting = await receive((response) => response.socket?.destroy());
  const moved = await receive((response) => {
    response.writeHead(302, { location: 'http://169.254.169.254/' });
    response.end();
  });
  const gone = await receive((response) => {
    response.writeHead(410);
    response.end();
  });
  const cases: [string, string | null, string][] = [
    [never.url, 'timeout', 'pending'],
    [dripping.url, 'timeout', 'pending'],
    [huge.url, null, 'delivered'],
    [resetting.url, 'reset', 'pending'],
    [moved.url, 'redirect', 'pending'],
    ['http://127.0.0.1:9/', 'connection', 'pending'],
    ['http://10.0.0.1/', 'blocked_address', 'held'],
    [gone.url, 'gone', 'held'],
  ];
  await Promise.all(
    cases.map(async ([url, reason, status]) => {
      const customer = await stack.customer();
      await listenAt(customer, url);
      await customer.live.post('/v1/clients/webhooks/test', undefined);
      const item = await eventually(t, async () => {
        const [first] = await deliveries(customer);
        return first?.attempts === 1 && first.status === status ? first : undefined;
      });
      const { data } = await customer.live.get(`/v1/clients/webhooks/deliveries/${item.id}`);
      const [attempt] = data.attempts as { reason: string; duration_ms: number }[];
      t.is(attempt?.reason ?? null, reason, url);
      t.true((attempt?.duration_ms ?? 0) < 5_000);
    }),
  );
  for (const { close } of [never, dripping, huge, resetting, moved, gone]) close();
});

test.serial(
  'an endpoint that is gone is given up; what is held goes out when it is set again',
  async (t) => {
    const gone = await receive((response) => {
      response.writeHead(410);
      response.end();
    });
    const customer = await stack.customer();
    await listenAt(customer, gone.url);
    await customer.live.post('/v1/clients/webhooks/test', undefined);
    await eventually(t, async () =>
      (await stack.api.webhooks.endpoint(customer.accountId))?.disabled ? true : undefined,
    );
    const held = { status: 'held', disabled_reason: 'gone' };
    t.like((await customer.live.post('/v1/clients/webhooks/test', undefined)).data, held);
    const [first] = await eventually(t, async () => {
      const found = await deliveries(customer, 'status=held');
      return found.length === 2 ? found : undefined;
    });
    const again = `/v1/clients/webhooks/deliveries/${first?.id}/redeliver`;
    t.like((await customer.live.post(again, undefined)).data, { id: first?.id, ...held });
    const back = await receive();
    await listenAt(customer, back.url);
    await eventually(t, () => (back.calls.length === 2 ? true : undefined));
    t.deepEqual(back.calls.map(typeOf), ['webhook.test', 'webhook.test'], 'the one it met, too');
    gone.close();
    back.close();
  },
);

test.serial('slow and dead neighbours delay nobody', async (t) => {
  let ended = 0;
  const slow = await receive((response) => response.on('close', () => ended++));
  const healthy = await receive();
  const [bad, good] = [await stack.customer(), await stack.customer()];
  await listenAt(bad, slow.url);
  await listenAt(good, healthy.url);
  for (let time = 0; time < 15; time++) await bad.live.post('/v1/clients/webhooks/test', undefined);
  await eventually(t, () => slow.calls[0]);
  await good.live.post('/v1/clients/webhooks/test', undefined);
  await eventually(t, () => healthy.calls[0]);
  t.is(ended, 0, 'before the first of the slow ones has ended');
  slow.close();
  healthy.close();
});

test.serial('what a stopped worker had not sent goes out when it is back', async (t) => {
  const receiver = await receive();
  const customer = await stack.customer();
  await listenAt(customer, receiver.url);
  await stack.stopWorkers('webhook');
  for (let time = 0; time < 5; time++)
    await customer.live.post('/v1/clients/webhooks/test', undefined);
  t.is(receiver.calls.length, 0);
  const fresh = await (await import('../../lib/app.ts')).createWorkerApp({
    ...{ config: stack.config, log: stack.worker.log, processName: 'webhook2', clock },
  });
  const { runWorker } = await import('../../workers/run.ts');
  const { webhook } = await import('../../workers/webhook.ts');
  const running = await runWorker(fresh, webhook);
  await eventually(t, () => (receiver.calls.length === 5 ? true : undefined));
  await running.stop();
  await fresh.close();
  receiver.close();
});

test.serial(
  'without an address there is nothing to test, and bad queries name their field',
  async (t) => {
    const { live } = await stack.customer();
    t.is((await live.post('/v1/clients/webhooks/test', undefined)).error.code, 'VALIDATION_ERROR');
    for (const query of ['limit=0', 'limit=101', 'before=x', 'status=sent', 'from=x', 'page=1']) {
      const answer = await live.get(`/v1/clients/webhooks/deliveries?${query}`);
      t.is(answer.error.code, 'VALIDATION_ERROR', query);
    }
  },
);

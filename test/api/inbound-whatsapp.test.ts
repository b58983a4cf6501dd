// WhatsApp's webhook: the handshake, signatures over raw bytes, and receipts in any order, number and company.
import { createHmac } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { fromMessageId, newId } from '../../lib/kernel/ids.ts';
import { eventsOf } from '../support/events.ts';
import { openQueues, type Queues, settled } from '../support/queues.ts';
import { shared } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

let stack: Stack;
let customer: Customer;
let queues: Queues;

test.before(async () => {
  // Without the window a phone that nobody knows is answered at once.
  stack = await startStack('inwa', { settings: { REACHABILITY_WINDOW_MS: '0' } });
  customer = await stack.customer();
  queues = await openQueues(stack.config.amqpUrls);
});
test.after.always(async () => {
  await queues?.close();
  await stack?.close();
});

const path = '/v1/inbound/whatsapp';
const sign = (body: Buffer, secret: string = shared.whatsapp.appSecret): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

const post = (body: Buffer | string, signature?: string) => {
  const bytes = Buffer.from(body);
  const headers: [string, string][] = [
    ['Content-Type', 'application/json'],
    ['X-Hub-Signature-256', signature ?? sign(bytes)],
  ];
  return sendRaw(stack.url, { method: 'POST', path, headers, body: bytes });
};

type Status = Record<string, unknown>;

const envelope = (statuses: unknown, field = 'messages') =>
  JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: shared.whatsapp.wabaId,
        changes: [{ field, value: { messaging_product: 'whatsapp', statuses } }],
      },
    ],
  });

type Sent = { id: unknown; phone: string; echo: string };

/** A message that WhatsApp took and says nothing about by itself. */
const sent = async (t: ExecutionContext): Promise<Sent> => {
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'silent' });
  const answer = await customer.live.deliver(phone.number, '818181');
  t.is(answer.status, 200, answer.text);
  const recipient = stack.api.recipients.ofRecipient(customer.accountId, 'live', phone.number);
  const id = fromMessageId(String(answer.data.message_id)) ?? '';
  return { id: answer.data.message_id, phone: phone.number, echo: `${id}.${recipient}` };
};

const receipt = (echo: unknown, status: unknown, more: Status = {}): Status => ({
  id: 'wamid.test',
  status,
  timestamp: String(Math.floor(Date.now() / 1000)),
  recipient_id: '14155550123',
  biz_opaque_callback_data: echo,
  ...(status === 'failed' ? { errors: [{ code: 131026, title: 'Message undeliverable' }] } : {}),
  ...more,
});

const report = async (t: ExecutionContext, ...statuses: Status[]): Promise<void> => {
  const answer = await post(envelope(statuses));
  t.is(answer.status, 200, answer.body);
};

const statusOf = async ({ id }: Sent) => (await customer.live.get(`/v1/otp/status/${id}`)).data;

test.serial('the handshake answers the challenge to whoever knows the token', async (t) => {
  const shake = (query: Record<string, string>) =>
    sendRaw(stack.url, { method: 'GET', path: `${path}?${new URLSearchParams(query)}` });
  const right = {
    ...{ 'hub.mode': 'subscribe', 'hub.challenge': '<b>1158201444</b>' },
    'hub.verify_token': shared.whatsapp.verifyToken,
  };
  const answer = await shake(right);
  t.is(answer.status, 200);
  t.is(answer.body, '<b>1158201444</b>');
  t.regex(answer.headers.get('content-type') ?? '', /^text\/plain/);
  for (const wrong of [
    { ...right, 'hub.verify_token': 'wrong' },
    { ...right, 'hub.verify_token': '' },
    { ...right, 'hub.mode': 'unsubscribe' },
    { 'hub.challenge': '1' },
  ]) {
    const refused = await shake(wrong as Record<string, string>);
    t.is(refused.status, 403);
    t.is(refused.body, '');
  }
});

test.serial('a body that the app secret did not sign is 403 and changes nothing', async (t) => {
  const message = await sent(t);
  const body = Buffer.from(envelope([receipt(message.echo, 'delivered')]));
  const flipped = Buffer.from(body);
  flipped[body.length - 20] = (flipped[body.length - 20] ?? 0) ^ 1;
  const right = sign(body);
  for (const [what, answer] of [
    ['empty', await post(body, '')],
    ['of another secret', await post(body, sign(body, 'another-secret'))],
    ['without its name', await post(body, right.slice('sha256='.length))],
    ['SHA-1', await post(body, right.replace('sha256', 'sha1'))],
    ['cut', await post(body, right.slice(0, -1))],
    ['of an empty body', await post(body, sign(Buffer.alloc(0)))],
    ['of a body with one bit changed', await post(flipped, right)],
    ['of the body with a line more', await post(`${body}\n`, right)],
  ] as const) {
    t.deepEqual([answer.status, answer.body], [403, ''], what);
  }
  const bare = await sendRaw(stack.url, { method: 'POST', path, body });
  t.is(bare.status, 403, 'no signature at all');
  await settled(t, stack, queues);
  t.is((await statusOf(message)).delivered_at, null);
});

test.serial(
  'the signature is over bytes: a body that is no UTF-8 or no JSON is taken',
  async (t) => {
    const message = await sent(t);
    const text = envelope([receipt(message.echo, 'delivered', { note: '@@' })]);
    const bytes = Buffer.from(text);
    bytes.set([0xff, 0xfe], bytes.indexOf('@@'));
    t.is((await post(bytes)).status, 200);
    await eventually(t, async () => (await statusOf(message)).delivered_at ?? undefined);
    for (const body of [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '42',
      '{"entry":null}',
      Buffer.from([0xff]),
    ]) {
      t.is((await post(body)).status, 200, String(body));
    }
  },
);

test.serial('3 MB are taken, more is 413', async (t) => {
  const whole = Buffer.alloc(3 * 1024 * 1024, ' ');
  t.is((await post(whole)).status, 200);
  const { body } = await post(Buffer.concat([whole, Buffer.from(' ')]));
  t.is(JSON.parse(body).error.code, 'PAYLOAD_TOO_LARGE');
});

test.serial('receipts in any order, once or often: one state, one event each', async (t) => {
  const orders: [statuses: string[], expected: string][] = [
    [['sent', 'delivered', 'read'], 'sent'],
    [['delivered', 'sent'], 'sent'],
    [['read'], 'sent'],
    [['read', 'delivered', 'sent'], 'sent'],
    [['sent', 'sent', 'delivered', 'delivered', 'delivered'], 'sent'],
    [['delivered', 'failed'], 'sent'],
    [['failed', 'delivered'], 'sent'],
    [['failed', 'failed', 'failed'], 'failed'],
    [['sent', 'failed', 'sent'], 'failed'],
    [['failed', 'sent', 'read'], 'sent'],
  ];
  const cases = await Promise.all(
    orders.map(async ([statuses, expected]) => ({ message: await sent(t), statuses, expected })),
  );
  const longest = Math.max(...orders.map(([statuses]) => statuses.length));
  for (let step = 0; step < longest; step++) {
    const now = cases.flatMap(({ message, statuses }) => {
      const status = statuses[step];
      return status === undefined ? [] : [receipt(message.echo, status)];
    });
    await report(t, ...now);
    await settled(t, stack, queues);
  }
  for (const { message, statuses, expected } of cases) {
    const what = statuses.join(', ');
    const found = await statusOf(message);
    t.is(found.status, expected, what);
    t.is(found.delivered_at === null, !/delivered|read/.test(what), what);
    const events = await eventsOf(stack, message.id);
    t.is(new Set(events).size, events.length, `${what}: ${events.join(', ')}`);
    t.is(events.includes('otp.delivered'), /delivered|read/.test(what), what);
    const verified = await customer.live.verify(message.phone, '818181');
    t.is(verified.status, expected === 'failed' ? 400 : 200, what);
  }
});

test.serial('a batch of a thousand receipts for one message and many is one job', async (t) => {
  const messages = await Promise.all(Array.from({ length: 10 }, () => sent(t)));
  const statuses = Array.from({ length: 1_000 }, (_, index) => {
    const message = messages[index % 10];
    const kinds = ['sent', 'delivered', 'read', 'delivered'] as const;
    return receipt(message?.echo, kinds[Math.floor(index / 10) % 4]);
  });
  await report(t, ...statuses);
  await settled(t, stack, queues);
  for (const message of messages) {
    t.truthy((await statusOf(message)).delivered_at);
    t.deepEqual(await eventsOf(stack, message.id), ['otp.sent', 'otp.delivered']);
  }
});

test.serial(
  'messages nobody knows, other fields and odd entries are passed over, the rest is taken',
  async (t) => {
    const message = await sent(t);
    const hostile = { toString: 1, valueOf: 1 };
    const odd: unknown[] = [
      receipt(`${newId()}.${'0'.repeat(32)}`, 'delivered'),
      receipt(`${newId()}.${'0'.repeat(32)}`, 'failed'),
      ...['', 'otp_x', 'x'.repeat(5_000), null, 42, {}, []].map((echo) =>
        receipt(echo, 'delivered'),
      ),
      ...['played', 'deleted', '', null, 7, hostile].map((kind) => receipt(message.echo, kind)),
      ...['', '-5', 'soon', '1e300', '9007199254740991', null, [], hostile, '1.5'].map(
        (timestamp) => receipt(message.echo, 'failed', { timestamp }),
      ),
      receipt(`${newId()}.${'0'.repeat(32)}`, 'failed', { errors: [{ code: 1.5 }, null] }),
      ...[null, 42, 'text', [], true],
    ];
    for (const field of ['message_template_status_update', 'account_update', 'x', '']) {
      t.is((await post(envelope([receipt(message.echo, 'failed')], field))).status, 200);
    }
    const errors = {
      entry: [{ changes: [{ field: 'messages', value: { errors: [{ code: 1 }] } }] }],
    };
    t.is((await post(JSON.stringify(errors))).status, 200);
    for (const value of [null, 42, 'x', {}, [null]]) {
      t.is((await post(envelope(value))).status, 200);
      t.is((await post(JSON.stringify({ entry: value }))).status, 200);
      t.is((await post(JSON.stringify({ entry: [{ changes: value }] }))).status, 200);
    }
    const answer = await post(envelope([...odd, receipt(message.echo, 'delivered')]));
    t.is(answer.status, 200, answer.body);
    await settled(t, stack, queues);
    t.truthy((await statusOf(message)).delivered_at);
    t.is((await statusOf(message)).status, 'sent');
    t.is(await queues.depth('whatsapp.status.dead'), 0);
  },
);

test.serial('calls that come together are one job, and each receipt takes effect', async (t) => {
  const messages = await Promise.all(Array.from({ length: 3 }, () => sent(t)));
  await settled(t, stack, queues);
  const jobs = () => Number(stack.api.broker.stats()['whatsapp.status.published'] ?? 0);
  const before = jobs();
  const calls = messages.flatMap(({ echo }) =>
    ['sent', 'delivered', 'read'].map((status) => report(t, receipt(echo, status))),
  );
  await Promise.all(calls);
  t.true(jobs() - before < calls.length, `${jobs() - before} jobs of ${calls.length} calls`);
  for (const message of messages) {
    await eventually(t, async () => (await statusOf(message)).delivered_at ?? undefined);
  }
});

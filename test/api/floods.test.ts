// What one caller can take from the others: places for sends, and bodies that nobody has looked at.
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import sinon from 'sinon';
import { holdNext } from '../support/hold.ts';
import { aNumber } from '../support/phones.ts';
import { shared } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('floods', { settings: { MAX_SENDS_IN_FLIGHT: '2' } });
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

type Half = { socket: Socket; said(): string };

/** The head of a request and the first byte of its body. */
const begin = (t: ExecutionContext, path: string, headers: Record<string, string>): Half => {
  const { port, hostname, host } = new URL(stack.url);
  const socket = connect(Number(port), hostname);
  let said = '';
  socket.on('data', (data) => {
    said += String(data);
  });
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  const lines = Object.entries({ Host: host, 'Content-Length': '1000', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`POST ${path} HTTP/1.1\r\n${head}\r\n{`);
  return { socket, said: () => said };
};

test.serial('bodies that do not come hold no place for sends', async (t) => {
  const headers = {
    Authorization: `Bearer ${customer.test.key}`,
    'Content-Type': 'application/json',
  };
  const before = stack.api.activity.requests;
  for (let slow = 0; slow < 6; slow++) begin(t, '/v1/otp/send', headers);
  await eventually(t, () => (stack.api.activity.requests >= before + 6 ? true : undefined));
  const sent = await customer.live.send(aNumber());
  t.is(sent.status, 200, sent.text);
});

const logIn = (email: string) =>
  stack.anybody.post('/v1/clients/login', { email, password: 'not a password' });

test.serial('bodies that do not come hold no place for logins', async (t) => {
  for (let slow = 0; slow < 70; slow++) {
    begin(t, '/v1/clients/login', { 'Content-Type': 'application/json' });
  }
  await eventually(t, () => (stack.api.activity.requests >= 70 ? true : undefined));
  t.is((await logIn('slow@tessera.example')).status, 401);
});

test.serial('a storm of logins waits unread, and who does not fit in is turned away', async (t) => {
  const looked = sinon.spy(stack.api.accounts, 'findByEmail');
  const taken = sinon.spy(stack.api.throttle, 'attempting');
  t.teardown(() => sinon.restore());
  const storm = Array.from({ length: 120 }, async (_, n) => {
    const answer = await logIn(`stormy${n}@tessera.example`);
    return { answer, begun: taken.callCount };
  });
  const sent = await customer.live.send(stack.phone().number);
  t.is(sent.status, 200, 'a send goes out meanwhile');
  t.true(taken.callCount < 60, 'and does not wait for them');
  const answers = await Promise.all(storm);
  const refused = answers.filter(({ answer }) => answer.status === 503);
  t.true(refused.length > 0);
  for (const { answer } of refused) {
    t.is(answer.error.code, 'SERVICE_UNAVAILABLE');
    t.regex(String(answer.headers.get('retry-after')), /^[2-5]$/);
    t.is(answer.headers.get('x-request-id'), String(answer.error.request_id));
    t.is(answer.headers.get('cache-control'), 'no-store');
  }
  const tried = answers.filter(({ answer }) => answer.status === 401 || answer.status === 429);
  t.is(tried.length + refused.length, 120);
  t.is(taken.callCount, tried.length, 'nothing was done for the refused');
  t.true(looked.callCount <= tried.length);
});

/** The head and the body of a login. */
const loginOver = (t: ExecutionContext, email: string, more: Record<string, string> = {}): Half => {
  const body = JSON.stringify({ email, password: 'not a password' });
  const headers = { 'Content-Type': 'application/json', ...more };
  const half = begin(t, '/v1/clients/login', { 'Content-Length': `${body.length}`, ...headers });
  half.socket.write(body.slice(1));
  return half;
};

test.serial('logins whose clients are gone cost nothing when their turn comes', async (t) => {
  const { passwords, throttle, accounts } = stack.api;
  const held = holdNext(accounts, 'findByEmail');
  const first = logIn('held1@tessera.example');
  await held.reached;
  const again = holdNext(accounts, 'findByEmail');
  const second = logIn('held2@tessera.example');
  await again.reached;
  const taken = sinon.spy(throttle, 'attempting');
  t.teardown(() => sinon.restore());
  const gone = Array.from({ length: 64 }, (_, n) => loginOver(t, `gone${n}@tessera.example`));
  await eventually(t, () => (passwords.logins.isFull() ? true : undefined));
  const large = loginOver(t, 'large@tessera.example', { 'Content-Length': '70000' });
  const said = await eventually(t, () => large.said() || undefined, 3_000);
  t.regex(said, /^HTTP\/1.1 413/, 'what is wrong is not read past');
  for (const { socket } of gone) socket.resetAndDestroy();
  // Behind these the ends of those are heard.
  for (let round = 0; round < 3; round++) await stack.anybody.get('/health');
  held.release();
  again.release();
  t.deepEqual([(await first).status, (await second).status], [401, 401]);
  await eventually(t, () => (passwords.logins.waiting() === 0 ? true : undefined));
  t.is(taken.callCount, 0);
  t.is((await logIn('next@tessera.example')).status, 401);
});

test.serial('all sending routes share one bound, which ends with the sends', async (t) => {
  const other = await stack.customer();
  const held = holdNext(stack.api.broker, 'publish');
  const first = customer.live.send(stack.phone().number);
  await held.reached;
  const again = holdNext(stack.api.broker, 'publish');
  const second = customer.live.deliver(stack.phone().number, '123456');
  await again.reached;
  const refused = await other.live.send(stack.phone().number);
  t.is(refused.error.code, 'SERVICE_UNAVAILABLE', refused.text);
  t.is(refused.headers.get('retry-after'), '1');
  const wrong = await other.live.send('+0');
  t.is(wrong.error.code, 'VALIDATION_ERROR', 'what is wrong is said all the same');
  held.release();
  again.release();
  t.deepEqual([(await first).status, (await second).status], [200, 200]);
  t.is((await other.live.send(stack.phone().number)).status, 200);
});

test.serial(
  'a provider without its secret or signature is refused before its body comes',
  async (t) => {
    const secret = 'X-Telegram-Bot-Api-Secret-Token';
    const signature = 'X-Hub-Signature-256';
    for (const [path, headers] of [
      ['telegram', {}],
      ['telegram', { [secret]: 'wrong' }],
      ['whatsapp', {}],
      ['whatsapp', { [signature]: 'sha256=short' }],
      ['payments', {}],
      ['payments', { 'Stripe-Signature': 't=1' }],
    ] as const) {
      const call = begin(t, `/v1/inbound/${path}`, headers as Record<string, string>);
      const said = await eventually(t, () => call.said() || undefined, 3_000);
      t.regex(said, /^HTTP\/1.1 403/, `${path} ${JSON.stringify(headers)}`);
    }
    const entitled = begin(t, '/v1/inbound/telegram', {
      [secret]: shared.telegram.webhookSecret,
      'Content-Length': String(1024 * 1024 + 1),
    });
    const said = await eventually(t, () => entitled.said() || undefined, 3_000);
    t.regex(said, /^HTTP\/1.1 413/, 'an update is at most 1 MiB');
  },
);

test.serial(
  'calls that stop before their end cannot fill the memory or shut receipts out',
  async (t) => {
    const size = 3 * 1024 * 1024;
    const headers = { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` };
    const calls = Array.from({ length: 10 }, () => {
      const call = begin(t, '/v1/inbound/whatsapp', { ...headers, 'Content-Length': String(size) });
      call.socket.write(Buffer.alloc(2_900_000));
      return call;
    });
    const refused = () => calls.filter(({ said }) => said().startsWith('HTTP/1.1 503'));
    await eventually(t, () => (refused().length >= 5 ? true : undefined));
    t.regex(refused()[0]?.said() ?? '', /\r\nRetry-After: 5\r\n/);
    const phone = stack.phone();
    const sent = await customer.live.send(phone.number);
    t.is(sent.status, 200, sent.text);
    await eventually(t, async () => {
      const { data } = await customer.live.get(`/v1/otp/status/${sent.data.message_id}`);
      return data.delivered_at ?? undefined;
    });
  },
);

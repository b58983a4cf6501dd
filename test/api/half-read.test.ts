// Requests that are begun and never finished: what they take of the service, and who gives way to whom.
import test, { type ExecutionContext } from 'ava';
import { routes } from '../../api/routes.ts';
import { beginRequest, type HalfRequest, openSilent } from '../support/half-requests.ts';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('halfread', {
    workers: ['whatsapp'],
    settings: {
      MAX_CONNECTIONS: '60',
      MAX_CONNECTIONS_PER_ADDRESS: '30',
      // Eight of them for callers without a credential.
      MAX_BODIES: '32',
      MAX_BODIES_PER_ADDRESS: '4',
      BODY_MEMORY_MB: '16',
    },
  });
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

const refusals = (calls: readonly HalfRequest[]): HalfRequest[] =>
  calls.filter(({ said }) => said().startsWith('HTTP/1.1 503'));

/** Waits until so many of `calls` were refused, and holds each refusal against the envelope. */
const refused = async (t: ExecutionContext, calls: readonly HalfRequest[], count: number) => {
  await eventually(t, () => (refusals(calls).length >= count ? true : undefined));
  t.is(refusals(calls).length, count);
  for (const { said } of refusals(calls)) {
    t.regex(said(), /\r\nRetry-After: 5\r\n/i);
    t.regex(said(), /"code":"SERVICE_UNAVAILABLE"/);
  }
};

const finishSoon = (t: ExecutionContext, calls: readonly HalfRequest[]) =>
  eventually(t, () => (calls.every(({ closed }) => closed()) ? true : undefined));

const half = (t: ExecutionContext, path: string, from: string, more: Record<string, string> = {}) =>
  beginRequest(t, stack.url, { path, from, headers: more });

test.serial('a call without a valid credential is refused before its body is read', async (t) => {
  const guarded = routes.filter(
    (route) => route.kind === 'json' && route.body !== undefined && route.auth !== 'none',
  );
  t.true(guarded.length > 15);
  for (const { method, path } of guarded) {
    for (const headers of [{}, { Authorization: 'Bearer sk_live_nothing' }]) {
      const at = path.replace(/\{\w+\}/, '0192f0c1-7a3b-7c4d-8e5f-0123456789ab');
      const call = await beginRequest(t, stack.url, { path: at, method, headers });
      await eventually(t, () => call.said() || undefined);
      t.regex(call.said(), /^HTTP\/1.1 401 /, `${method} ${path}: ${call.said()}`);
      call.socket.destroy();
    }
  }
});

test.serial(
  'half-read sign-ups of one address give way to its next one, and hold no place of others',
  async (t) => {
    const path = '/v1/clients/register';
    const calls: HalfRequest[] = [];
    for (let n = 0; n < 12; n++) calls.push(await half(t, path, '127.0.0.21'));
    await refused(t, calls, 8);
    t.is(refusals(calls.slice(8)).length, 0, 'the last four are waited for');
    const others: HalfRequest[] = [];
    for (let n = 0; n < 4; n++) others.push(await half(t, path, `127.0.0.${31 + n}`));
    t.is((await stack.anybody.post(path, { email: 'x' })).status, 400, 'what is whole is read');
    t.is(refusals([...calls.slice(8), ...others]).length, 0);
    // Above the share of strangers the oldest of all gives way.
    await half(t, path, '127.0.0.41');
    await refused(t, calls, 9);
    t.is((await customer.test.send(aNumber())).status, 200);
    await finishSoon(t, refusals(calls));
  },
);

test.serial('half-read sends with a key give way to whole ones, and /health answers', async (t) => {
  const headers = { Authorization: `Bearer ${customer.test.key}` };
  const calls: HalfRequest[] = [];
  for (let n = 0; n < 40; n++) {
    calls.push(await half(t, '/v1/otp/send', `127.0.0.${50 + (n % 5)}`, headers));
    if (n % 8 === 0) t.is((await stack.anybody.get('/health')).status, 200);
  }
  await refused(t, calls, 8);
  t.is(refusals(calls.slice(0, 8)).length, 8, 'those that were waited for longest');
  const sent = await customer.live.send(stack.phone().number);
  t.is(sent.status, 200, sent.text);
  for (const { socket } of calls) socket.destroy();
});

test.serial('bodies of JSON and of providers share one budget of bytes', async (t) => {
  // Four MiB are the strangers': one body of 3 MB, then forms of 60 kB until it gives way as the largest.
  const length = 3 * 1024 * 1024;
  const provider = await beginRequest(t, stack.url, {
    ...{ path: '/v1/inbound/whatsapp', from: '127.0.0.61', length, bytes: length - 10 },
    headers: { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` },
  });
  const second = await beginRequest(t, stack.url, {
    ...{ path: '/v1/inbound/whatsapp', from: '127.0.0.62', length, bytes: length / 2 },
    headers: { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` },
  });
  await refused(t, [provider, second], 1);
  const form = await beginRequest(t, stack.url, {
    ...{ path: '/v1/clients/register', from: '127.0.0.63', bytes: 59_000 },
  });
  t.is((await customer.test.send(aNumber())).status, 200);
  t.is(form.said(), '');
});

test.serial(
  'idle connections are closed for new ones, and those of callers with a key last',
  async (t) => {
    const kept = await openSilent(t, stack.url, '127.0.0.70');
    const { host } = new URL(stack.url);
    const bearer = `Authorization: Bearer ${customer.test.key}\r\n`;
    const ask = `GET /v1/clients/pricing HTTP/1.1\r\nHost: ${host}\r\n${bearer}\r\n`;
    kept.socket.write(ask);
    await eventually(t, () => kept.said().includes('200 OK') || undefined);
    // Thirty of one address at most, sixty in all.
    const one: HalfRequest[] = [];
    for (let n = 0; n < 35; n++) one.push(await openSilent(t, stack.url, '127.0.0.71'));
    await finishSoon(t, one.slice(0, 5));
    t.deepEqual(
      one.slice(5).filter(({ closed }) => closed()),
      [],
    );
    const many: HalfRequest[] = [];
    for (let n = 0; n < 100; n++)
      many.push(await openSilent(t, stack.url, `127.0.0.${80 + (n % 20)}`));
    await finishSoon(t, [...one, ...many.slice(0, 40)]);
    t.is((await stack.anybody.get('/health')).status, 200);
    const sent = await customer.live.send(stack.phone().number);
    t.is(sent.status, 200, sent.text);
    t.false(kept.closed());
    const metrics = await stack.api.metrics.registry.metrics();
    t.regex(metrics, /tessera_intake_refused_total\{limit="connections"\} [1-9]/);
    t.regex(metrics, /tessera_intake_refused_total\{limit="connections_of_address"\} [1-9]/);
    t.regex(metrics, /tessera_intake_refused_total\{limit="bodies_of_strangers"\} [1-9]/);
  },
);

/** The same request so many times in one piece, without waiting for an answer. */
const ahead = (path: string, count: number): string => {
  const { host } = new URL(stack.url);
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(count);
};

const answersIn = (said: string): number => said.split('HTTP/1.1 404').length - 1;

test.serial(
  'a connection that sends requests far ahead of their answers is closed, one that sends a few is answered',
  async (t) => {
    const few = await openSilent(t, stack.url, '127.0.0.111');
    few.socket.write(ahead('/nothing', 16));
    await eventually(t, () => (answersIn(few.said()) === 16 ? true : undefined));
    few.socket.write(ahead('/nothing', 16));
    await eventually(t, () => (answersIn(few.said()) === 32 ? true : undefined));
    t.false(few.closed());

    const many = await openSilent(t, stack.url, '127.0.0.112');
    many.socket.write(ahead('/nothing', 1_000));
    await finishSoon(t, [many]);
    t.true(answersIn(many.said()) < 1_000);
    const metrics = await stack.api.metrics.registry.metrics();
    t.regex(metrics, /tessera_intake_refused_total\{limit="requests_of_connection"\} 1/);
    t.is((await stack.anybody.get('/health')).status, 200);
  },
);

// better-auth, run from its npm package with Tessera as the sender of its phone-number plugin.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { createAuth } from '../../examples/better-auth/auth.ts';
import { createDeliver } from '../../examples/deliver/deliver.ts';
import { serveExample } from '../support/run-example.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let customer: Customer;

test.before(async () => {
  stack = await startStack('examples_auth');
  customer = await stack.customer();
});
test.after.always(() => stack?.close());

const post = (url: string, body: unknown): Request =>
  new Request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

type Answer = { message?: string; code?: string; status?: boolean; token?: string; user?: object };

const read = async (response: Response): Promise<Answer> => (await response.json()) as Answer;

test('a phone signs up and in: the code arrives on WhatsApp, and the session knows the number', async (t) => {
  const program = await serveExample(['node', 'examples/better-auth/auth.ts'], {
    TESSERA_URL: stack.url,
    TESSERA_KEY: customer.live.key ?? '',
    BETTER_AUTH_URL: 'http://localhost:3000',
    BETTER_AUTH_SECRET: randomBytes(32).toString('hex'),
  });
  t.teardown(program.stop);
  const base = `http://127.0.0.1:${program.port}/api/auth`;
  const phone = stack.phone();
  const { number: phoneNumber } = phone;
  const asked = await fetch(post(`${base}/phone-number/send-otp`, { phoneNumber }));
  t.is(asked.status, 200, await asked.text());
  const [message] = await phone.messages();
  t.like(message, { channel: 'whatsapp' });
  const code = message?.code ?? '';

  const wrong = { phoneNumber, code: code === '000000' ? '000001' : '000000' };
  t.is((await fetch(post(`${base}/phone-number/verify`, wrong))).status, 400);
  const verified = await fetch(post(`${base}/phone-number/verify`, { phoneNumber, code }));
  t.is(verified.status, 200);
  t.like(await read(verified), { status: true, user: { phoneNumber, phoneNumberVerified: true } });
  const cookie = verified.headers.getSetCookie().map((one) => one.split(';')[0]);
  const session = await fetch(`${base}/get-session`, { headers: { cookie: cookie.join('; ') } });
  t.like(await read(session), { user: { phoneNumber } });

  const again = await fetch(post(`${base}/phone-number/verify`, { phoneNumber, code }));
  t.is(again.status, 400, 'a code counts once');
});

test('what Tessera refuses, the person signing in is told in words of their own', async (t) => {
  const deliver = createDeliver({ url: stack.url, key: customer.test.key ?? '' });
  const baseURL = 'http://localhost:3000';
  const auth = createAuth({ deliver, baseURL, secret: randomBytes(32).toString('hex') });
  const ask = (phoneNumber: string) =>
    auth.handler(post(`${baseURL}/api/auth/phone-number/send-otp`, { phoneNumber }));
  const cases: [string, number, RegExp][] = [
    ['+15550104001', 422, /cannot be reached/],
    ['+15550104091', 422, /cannot be reached.*"telegramUrl":"https:/],
    ['+15550104291', 429, /Try again later.*"retryAfterSeconds":30/],
    ['+15550105001', 503, /Try again/],
    ['+15550104021', 500, /could not be sent/],
    ['12345', 400, /Invalid phone number/i],
  ];
  for (const [phone, status, words] of cases) {
    const answer = await ask(phone);
    const text = await answer.text();
    t.is(answer.status, status, text);
    t.regex(text, words);
    t.notRegex(text, /balance|credit/i, 'our account is nobody’s business');
  }
});

test('when Tessera cannot be reached, the sign-in says so and ends', async (t) => {
  const deliver = createDeliver({ url: 'http://127.0.0.1:9', key: 'sk_test_x', timeoutMs: 500 });
  const baseURL = 'http://localhost:3000';
  const auth = createAuth({ deliver, baseURL, secret: randomBytes(32).toString('hex') });
  const body = { phoneNumber: '+14155552671' };
  const answer = await auth.handler(post(`${baseURL}/api/auth/phone-number/send-otp`, body));
  t.is(answer.status, 503);
});

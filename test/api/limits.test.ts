// The limits of sends and verifies through HTTP: every row of spec section 8, what a refusal says, and what it takes.
import test, { type ExecutionContext } from 'ava';
import { tier1000 } from '../../lib/limits/rules.ts';
import type { Answer } from '../support/client.ts';
import { aNumber } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { withoutEffect } from '../support/refusals.ts';
import { type Customer, type Stack, startStack } from '../support/stack.ts';
import { admitEarlier, type Earlier } from '../support/windows.ts';

let stack: Stack;
let redis: RedisKeys;

let begunAt = 0;

test.before(async () => {
  stack = await startStack('limits');
  redis = openRedisKeys();
});
test.after.always(async () => {
  if (stack) await redis.remove(stack.config.keyPrefix);
  redis?.close();
  await stack?.close();
});

test.beforeEach(() => {
  begunAt = Date.now();
});

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

const keyOf = (phone: string): string => stack.api.recipients.ofPhone(phone);

/**
 * A refusal by the row: its members, its header, and no window, provider or message touched. The wait may be shorter
 * by what has passed since the test began.
 */
const refuses = async (
  t: ExecutionContext,
  call: () => Promise<Answer>,
  expected: Record<string, unknown>,
  [least, most]: [number, number],
): Promise<Answer> => {
  let refused = undefined as unknown as Answer;
  let answeredAt = 0;
  await withoutEffect(t, { stack, redis }, async () => {
    refused = await call();
    answeredAt = Date.now();
  });
  t.is(refused.status, 429, refused.text);
  t.like(refused.error, { code: 'RATE_LIMIT_EXCEEDED', layer: 'origin', ...expected });
  const wait = Number(refused.error.retry_after_seconds);
  const passed = Math.ceil((answeredAt - begunAt) / second);
  t.true(wait >= least - passed && wait <= most, `${wait} s, not ${least} to ${most}`);
  t.is(refused.headers.get('retry-after'), String(wait));
  const reset = Date.parse(String(refused.error.reset_at)) - answeredAt;
  t.true(Math.abs(reset - wait * second) < 3 * second, 'reset_at says the same');
  return refused;
};

test.serial(
  'same account and recipient: one resend in 30 seconds, sends and delivers together',
  async (t) => {
    const customer = await stack.customer();
    const [phone, other] = [aNumber(), await stack.customer()];
    t.is((await customer.live.send(phone)).status, 200);
    const cooldown = { reason: 'cooldown', dimension: 'recipient', limit: 1, window_seconds: 30 };
    await refuses(t, () => customer.live.send(phone), cooldown, [25, 30]);
    await refuses(t, () => customer.live.deliver(phone, '123456'), cooldown, [25, 30]);
    t.is((await other.live.send(phone)).status, 200, 'another account is another pair');
    t.is((await customer.live.send(aNumber())).status, 200, 'another phone is another pair');
  },
);

test.serial('same account and recipient: three in ten minutes', async (t) => {
  const customer = await stack.customer();
  const phone = aNumber();
  const pair = { accountId: customer.accountId, phoneKey: keyOf(phone) };
  const earlier = [95, 62, 31].map((ago) => ({ ...pair, agoMs: ago * second }));
  await admitEarlier(stack, earlier);
  const expected = {
    ...{ reason: 'recipient_protection', dimension: 'recipient' },
    ...{ limit: 3, window_seconds: 600 },
  };
  await refuses(t, () => customer.live.send(phone), expected, [495, 506]);
});

test.serial(
  'same recipient across all accounts: six in ten minutes, twenty in a day',
  async (t) => {
    const customer = await stack.customer();
    const [six, twenty] = [aNumber(), aNumber()];
    const calls = (phone: string, count: number, stepMs: number): Earlier[] =>
      Array.from({ length: count }, (_, index) => ({
        phoneKey: keyOf(phone),
        agoMs: (count - index) * stepMs,
      }));
    await admitEarlier(stack, calls(six, 6, 40 * second));
    await admitEarlier(stack, calls(twenty, 20, hour));
    const expected = { reason: 'recipient_protection', dimension: 'recipient_global' };
    const tenMinutes = { ...expected, limit: 6, window_seconds: 600 };
    await refuses(t, () => customer.live.send(six), tenMinutes, [350, 361]);
    const aDay = { ...expected, limit: 20, window_seconds: 86_400 };
    await refuses(t, () => customer.live.send(twenty), aDay, [4 * 3_600 - 15, 4 * 3_600 + 1]);
    t.is((await customer.test.send(six)).status, 200, 'the sandbox counts for itself');
  },
);

test.serial(
  'same key: 300 verifies or sends in a minute; the account’s other keys go on',
  async (t) => {
    const customer = await stack.customer();
    const phone = aNumber();
    const verify = () => customer.live.verify(phone, '123456');
    const answers = await Promise.all(Array.from({ length: 300 }, verify));
    t.deepEqual(new Set(answers.map(({ error }) => error.code)), new Set(['OTP_NOT_FOUND']));
    const expected = {
      ...{ reason: 'sustained', dimension: 'credential' },
      ...{ limit: 300, window_seconds: 60 },
    };
    await refuses(t, verify, expected, [30, 60]);
    await refuses(t, () => customer.live.send(aNumber()), expected, [30, 60]);
    t.is((await customer.test.verify(phone, '123456')).error.code, 'OTP_NOT_FOUND');
  },
);

test.serial('same account: 100 in ten seconds', async (t) => {
  const customer = await stack.customer();
  const { accountId } = customer;
  await admitEarlier(
    stack,
    Array.from({ length: 99 }, () => ({ accountId, agoMs: 0 })),
  );
  const last = await customer.live.send(aNumber());
  t.is(last.status, 200);
  t.regex(last.headers.get('ratelimit') ?? '', /^"burst";r=0;t=\d+$/);
  const expected = { reason: 'burst', dimension: 'account', limit: 100, window_seconds: 10 };
  const refused = await refuses(t, () => customer.live.send(aNumber()), expected, [1, 10]);
  t.regex(refused.headers.get('ratelimit') ?? '', /^"burst";r=0;t=\d+$/);
});

test.serial('same account: 300 in a minute', async (t) => {
  const customer = await stack.customer();
  const { accountId } = customer;
  const calls = [40, 29, 18].flatMap((ago) =>
    Array.from({ length: 100 }, () => ({ accountId, agoMs: ago * second })),
  );
  await admitEarlier(
    stack,
    calls.map((call, index) => ({ ...call, phoneKey: `s${index}` })),
  );
  const expected = { reason: 'sustained', dimension: 'account', limit: 300, window_seconds: 60 };
  await refuses(t, () => customer.live.send(aNumber()), expected, [19, 21]);
});

test.serial('same account: 18,000 in an hour', async (t) => {
  const customer = await stack.customer();
  const { accountId } = customer;
  // Made when the account had a larger tier; each recipient as often as ten minutes allow.
  const calls = Array.from({ length: 18_000 }, (_, index) => ({
    ...{ accountId, phoneKey: `h${index % 2_400}`, tier: tier1000 },
    agoMs: 50 * minute - index * 100,
  }));
  await admitEarlier(stack, calls);
  const expected = { reason: 'hourly', dimension: 'account', limit: 18_000, window_seconds: 3_600 };
  await refuses(t, () => customer.live.send(aNumber()), expected, [599, 662]);
  await redis.remove(`${stack.config.keyPrefix}lim:`);
});

test.serial('of several limits the one with the longest wait is told', async (t) => {
  const customer = await stack.customer();
  const phone = aNumber();
  const { accountId } = customer;
  const pair = { accountId, phoneKey: keyOf(phone) };
  await admitEarlier(stack, [
    ...[95, 62, 31].map((ago) => ({ ...pair, agoMs: ago * second })),
    ...Array.from({ length: 100 }, () => ({ accountId, agoMs: 0 })),
  ]);
  const expected = { dimension: 'recipient', limit: 3, window_seconds: 600 };
  await refuses(t, () => customer.live.send(phone), expected, [495, 506]);
});

test.serial('of fifty sends at once to one phone one is taken', async (t) => {
  const customer = await stack.customer();
  const phone = stack.phone();
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => customer.live.send(phone.number)),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 1);
  t.is(answers.filter(({ status }) => status === 429).length, 49);
  t.is((await phone.messages()).length, 1);
});

test.serial('a refused request gives its Idempotency-Key back', async (t) => {
  const customer = await stack.customer();
  const phone = aNumber();
  const once = { 'Idempotency-Key': 'refused-once' };
  await customer.live.send(phone);
  t.is((await customer.live.send(phone, once)).status, 429);
  t.is((await customer.live.send(aNumber(), once)).status, 200);
});

test.serial(
  'a send that delivered nothing gives the pair’s place back, and no other',
  async (t) => {
    const customer = await stack.customer();
    const phone = stack.phone();
    await phone.behave({ whatsapp: 'error:131009' });
    const prefix = `${stack.config.keyPrefix}lim:`;
    const before = new Set(await redis.names(prefix));
    t.is((await customer.live.send(phone.number)).error.code, 'DELIVERY_FAILED');
    const taken = (await redis.names(prefix)).filter((name) => !before.has(name));
    const rows = taken
      .map((name) => name.slice(prefix.length).replace(/\{(\w+):.*\}/, '$1:'))
      .sort();
    t.deepEqual(
      rows.map((row) => row.slice(0, 3)),
      ['a:b', 'a:c', 'a:h', 'a:s', 'p:p'],
    );
    for (let again = 2; again <= 6; again++) {
      t.is((await customer.live.send(phone.number)).error.code, 'DELIVERY_FAILED');
    }
    const expected = { dimension: 'recipient_global', limit: 6, window_seconds: 600 };
    await refuses(t, () => customer.live.send(phone.number), expected, [580, 600]);
  },
);

test.serial(
  'five failures block for fifteen minutes, and a resend does not change that',
  async (t) => {
    const customer: Customer = await stack.customer();
    const phone = aNumber();
    await customer.live.deliver(phone, '111111');
    for (let call = 0; call < 5; call++) await customer.live.verify(phone, '222222');
    await redis.remove(`${stack.config.keyPrefix}lim:{ap:l:${customer.accountId}`);
    t.is((await customer.live.deliver(phone, '333333')).status, 200);
    const blocked = await customer.live.verify(phone, '333333');
    t.is(blocked.status, 429);
    t.like(blocked.error, {
      ...{ code: 'TOO_MANY_ATTEMPTS', layer: 'origin', dimension: 'recipient' },
      ...{ limit: 5, window_seconds: 900 },
    });
    const other = await stack.customer();
    t.is((await other.live.verify(phone, '333333')).error.code, 'OTP_NOT_FOUND', 'per account');
  },
);

test.serial('links of one account, issued and forgotten, have a burst of their own', async (t) => {
  const [customer, other] = await Promise.all([stack.customer(), stack.customer()]);
  const forget = () =>
    customer.live.call('DELETE', '/v1/otp/telegram-link', { body: { phone: aNumber() } });
  const issue = (by = customer.live) => by.post('/v1/otp/telegram-link', { phone: aNumber() });
  const calls = Array.from({ length: 100 }, (_, index) => (index % 2 ? issue() : forget()));
  t.true((await Promise.all(calls)).every(({ status }) => status === 200));
  const burst = { dimension: 'account', reason: 'burst', limit: 100, window_seconds: 10 };
  // Without a look at all of Redis in between, which could outlast the window.
  for (const refused of [await issue(), await forget()]) {
    t.is(refused.status, 429, refused.text);
    t.like(refused.error, { code: 'RATE_LIMIT_EXCEEDED', ...burst });
  }
  t.is((await issue(customer.test)).status, 200, 'test calls count for themselves');
  t.is((await issue(other.live)).status, 200);
});

test.serial('look-ups and links have their own limits', async (t) => {
  const customer = await stack.customer();
  const phone = aNumber();
  const link = () => customer.live.post('/v1/otp/telegram-link', { phone });
  for (let call = 0; call < 3; call++) t.is((await link()).status, 200);
  const links = { dimension: 'recipient', limit: 3, window_seconds: 600 };
  await refuses(t, link, links, [590, 600]);
  const sent = await customer.test.send(phone);
  const look = () => customer.test.get(`/v1/otp/status/${sent.data.message_id}`);
  const looks = await Promise.all(Array.from({ length: 60 }, look));
  t.true(looks.every(({ status }) => status === 200));
  await refuses(t, look, { dimension: 'account', limit: 60, window_seconds: 60 }, [30, 60]);
});

// The guard against pumping through HTTP: codes that nobody enters hold their prefix for their account, and no other.
import { randomInt } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { listen } from '../../api/listen.ts';
import { createApiApp } from '../../lib/app.ts';
import { silentLog } from '../../lib/kernel/log.ts';
import { createClient } from '../support/client.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { createPhone } from '../support/phones.ts';
import { openRedisKeys, type RedisKeys } from '../support/redis-keys.ts';
import { withoutEffect } from '../support/refusals.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

// The clock is put forward between the tests, so they run one after the other.
const clock = createHandClock();
const codeLifeMs = 301_000;
const hour = 3_600_000;
let stack: Stack;
let redis: RedisKeys;
let customer: Customer;

test.before(async () => {
  stack = await startStack('pumping', { clock });
  redis = openRedisKeys();
  customer = await stack.customer();
});
test.after.always(async () => {
  if (stack) await redis.remove(stack.config.keyPrefix);
  redis?.close();
  await stack?.close();
});

/** A prefix that nobody else uses: Egyptian mobile numbers. */
const aPrefix = (): string => `+20100${randomInt(100, 1_000)}`;
const numberIn = (prefix: string, index: number): string => `${prefix}${1_000 + index}`;
const prefix = aPrefix();

const isHeld = ({ accountId }: Customer): boolean => {
  try {
    stack.api.sends.guard.check({ accountId, mode: 'live' }, numberIn(prefix, 0));
    return false;
  } catch {
    return true;
  }
};

/** Sends to `count` numbers of the prefix; the codes of `verified` of them come back, the others expire. */
const attack = async (t: ExecutionContext, count: number, verified = 0): Promise<void> => {
  const numbers = Array.from({ length: count }, (_, index) => numberIn(prefix, index));
  const answers = await Promise.all(numbers.map((number) => customer.live.send(number)));
  t.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  for (const number of numbers.slice(0, verified)) {
    const code = await createPhone(stack.sim.url, number).code();
    t.is((await customer.live.verify(number, code)).status, 200);
  }
  clock.forward(codeLifeMs);
};

test.serial(
  'thirty codes of one prefix, two of them entered: the next send there is refused',
  async (t) => {
    await attack(t, 30, 2);
    await eventually(t, () => isHeld(customer) || undefined, 30_000);
    await withoutEffect(t, { stack, redis }, async () => {
      const once = { 'Idempotency-Key': 'held' };
      const refused = await customer.live.send(numberIn(prefix, 31), once);
      t.is(refused.status, 429, refused.text);
      const wait = Number(refused.error.retry_after_seconds);
      t.like(refused.error, {
        ...{ code: 'RATE_LIMIT_EXCEEDED', reason: 'fraud_protection', layer: 'origin' },
        ...{ dimension: 'recipient_prefix', limit: 30, window_seconds: 3_600 },
      });
      t.true(wait > 3_500 && wait <= 3_600, `${wait}`);
      t.is(refused.headers.get('retry-after'), String(wait));
      const reset = Date.parse(String(refused.error.reset_at)) - clock.now();
      t.true(Math.abs(reset - wait * 1_000) < 3_000);
      const delivered = await customer.live.deliver(numberIn(prefix, 32), '123456');
      t.is(delivered.error.reason, 'fraud_protection');
    });
  },
);

test.serial('another prefix, another account and the sandbox go on', async (t) => {
  const other = await stack.customer();
  t.is((await customer.live.send(numberIn(aPrefix(), 1))).status, 200);
  t.is((await other.live.send(numberIn(prefix, 33))).status, 200);
  t.is((await customer.test.send(numberIn(prefix, 34))).status, 200);
});

test.serial(
  'in shadow mode, or on the allow-list, the same hold lets a send through',
  async (t) => {
    const changes = [
      { fraudGuard: 'shadow' as const },
      { fraudGuard: 'off' as const },
      { fraudAllowedAccounts: customer.accountId },
      { fraudAllowedPrefixes: prefix },
    ];
    for (const [index, change] of changes.entries()) {
      const config = { ...stack.config, ...change };
      const app = await createApiApp({ config, clock, log: silentLog, processName: 'other' });
      const listening = await listen(app);
      try {
        const client = createClient(`http://127.0.0.1:${listening.port}`, customer.live.key);
        const sent = await client.send(numberIn(prefix, 40 + index));
        t.is(sent.status, 200, sent.text);
      } finally {
        await listening.close();
        await app.close();
      }
    }
    t.true(isHeld(customer), 'and it is still on');
  },
);

test.serial('the hold ends by itself', async (t) => {
  clock.forward(hour);
  t.is((await customer.live.send(numberIn(prefix, 35))).status, 200);
});

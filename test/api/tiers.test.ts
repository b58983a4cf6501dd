// Tiers and what the limit headers say about them (spec section 8).
import test from 'ava';
import { aNumber } from '../support/phones.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';
import { admitEarlier } from '../support/windows.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('tiers');
});
test.after.always(() => stack?.close());

type Tier = Parameters<Stack['api']['accounts']['setTier']>[1];

const give = async ({ accountId }: Customer, tier: Tier): Promise<void> => {
  await stack.api.accounts.setTier(accountId, tier);
  await stack.api.revocations.announce();
};

const policy = (burst: number, sustained: number, hourly: number): string =>
  `"burst";q=${burst};w=10, "sustained";q=${sustained};w=60, "hourly";q=${hourly};w=3600`;

const headersOf = async (customer: Customer) => {
  const { headers } = await customer.test.send(aNumber());
  return {
    policy: headers.get('ratelimit-policy'),
    tier: headers.get('x-service-rate-tier'),
    state: headers.get('ratelimit'),
  };
};

test('a standard account has 100, 300 and 18,000', async (t) => {
  const customer = await stack.customer();
  t.deepEqual(await headersOf(customer), {
    ...{ policy: policy(100, 300, 18_000), tier: 'standard', state: '"burst";r=99;t=10' },
  });
  t.regex((await headersOf(customer)).state ?? '', /^"burst";r=98;t=\d+$/);
});

test('every answer to a key says the policy, whatever it is; the state comes with sends alone', async (t) => {
  const customer = await stack.customer();
  const answers = [
    await customer.test.send('nonsense'),
    await customer.test.verify(aNumber(), '123456'),
    await customer.test.get('/v1/otp/status/otp_x'),
    await customer.test.post('/v1/otp/telegram-link', { phone: aNumber() }),
  ];
  for (const { headers, text } of answers) {
    t.is(headers.get('ratelimit-policy'), policy(100, 300, 18_000), text);
    t.is(headers.get('x-service-rate-tier'), 'standard');
    t.is(headers.get('ratelimit'), null);
  }
  const stranger = await stack.anybody.get('/v1/otp/status/otp_x');
  t.is(stranger.headers.get('ratelimit-policy'), null);
});

test('reviewed tiers raise the account’s rows alone', async (t) => {
  const customer = await stack.customer();
  const until = Date.now() + 60_000;
  for (const [tier, expected] of [
    [{ name: 'tier-1000', perMinute: null, expiresAt: until }, policy(333, 1_000, 60_000)],
    [{ name: 'tier-5000', perMinute: null, expiresAt: until }, policy(1_667, 5_000, 300_000)],
    [{ name: 'custom', perMinute: 600, expiresAt: null }, policy(200, 600, 36_000)],
  ] as const) {
    await give(customer, tier);
    const found = await headersOf(customer);
    t.is(found.policy, expected);
    t.is(found.tier, tier.name);
  }
  const { accountId } = customer;
  await admitEarlier(
    ...([stack, Array.from({ length: 100 }, () => ({ accountId, agoMs: 0 }))] as const),
  );
  t.is((await customer.live.send(aNumber())).status, 200, 'beyond the standard burst');
  const phone = aNumber();
  t.is((await customer.live.send(phone)).status, 200);
  t.like((await customer.live.send(phone)).error, { reason: 'cooldown' });
});

test('a reviewed tier ends by itself', async (t) => {
  const customer = await stack.customer();
  const ends = Date.now() + 1_500;
  await give(customer, { name: 'tier-1000', perMinute: null, expiresAt: ends });
  const first = await headersOf(customer);
  if (Date.now() < ends) t.is(first.tier, 'tier-1000');
  await eventually(t, () => (Date.now() >= ends ? true : undefined));
  t.like(await headersOf(customer), { tier: 'standard', policy: policy(100, 300, 18_000) });
});

test('a custom tier can also be smaller', async (t) => {
  const customer = await stack.customer();
  await give(customer, { name: 'custom', perMinute: 3, expiresAt: null });
  t.is((await customer.live.send(aNumber())).status, 200);
  t.like((await customer.live.send(aNumber())).error, { reason: 'burst', limit: 1 });
});

// Turnstile siteverify: the three test secrets, single use, 300 s, idempotency_key.
import test from 'ava';
import { call, startPair } from './harness.ts';
import { dummyToken } from './turnstile.ts';

const passes = '1x0000000000000000000000000000000AA';
const fails = '2x0000000000000000000000000000000AA';
const spent = '3x0000000000000000000000000000000AA';
const clock = { now: () => 1_750_000_000_000 };

const verify = async (url: string, body: Record<string, string>) =>
  (await call(`${url}/turnstile/v0/siteverify`, 'POST', body)).body;

test('the test secrets pass, fail, and call the token spent', async (t) => {
  const { sim } = await startPair(t, { clock });
  const good = await verify(sim.url, { secret: passes, response: dummyToken });
  t.like(good, { success: true, 'error-codes': [], hostname: 'localhost' });
  t.is(good.challenge_ts, '2025-06-15T15:06:40.000Z');
  const judged = async (secret: string, response: string) =>
    (await verify(sim.url, { secret, response }))['error-codes'];
  t.deepEqual(await judged(fails, dummyToken), ['invalid-input-response']);
  t.deepEqual(await judged(spent, dummyToken), ['timeout-or-duplicate']);
  t.deepEqual(await judged('', dummyToken), ['missing-input-secret']);
  t.deepEqual(await judged('real', dummyToken), ['invalid-input-secret']);
  t.deepEqual(await judged(passes, ''), ['missing-input-response']);
  t.deepEqual(await judged(passes, 'forged'), ['invalid-input-response']);
  t.like(sim.stats().turnstile, { success: 1, 'timeout-or-duplicate': 1 });
});

test('a token works once, again only with its idempotency_key, and for 300 s', async (t) => {
  let now = 1_750_000_000_000;
  const { sim } = await startPair(t, { clock: { now: () => now } });
  const issue = async () => (await call(`${sim.url}/turnstile/tokens`, 'POST')).body.token;
  const first = { secret: passes, response: await issue() };
  t.true((await verify(sim.url, { ...first, idempotency_key: 'a' })).success);
  t.true((await verify(sim.url, { ...first, idempotency_key: 'a' })).success);
  t.deepEqual((await verify(sim.url, first))['error-codes'], ['timeout-or-duplicate']);
  const second = { secret: passes, response: await issue() };
  now += 300_001;
  t.deepEqual((await verify(sim.url, second))['error-codes'], ['timeout-or-duplicate']);
});

test('a form is read as well as JSON, anything else is bad-request', async (t) => {
  const { sim } = await startPair(t);
  const url = `${sim.url}/turnstile/v0/siteverify`;
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  t.true((await call(url, 'POST', `secret=${passes}&response=${dummyToken}`, form)).body.success);
  t.deepEqual((await call(url, 'POST', '{')).body['error-codes'], ['bad-request']);
});

// Admission on a real Redis, row by row, at the limits of the contract.
import test from 'ava';
import { createAdmission } from '../../lib/limits/admission.ts';
import {
  contentsUnder,
  keysUnder,
  openTestRedis,
  type TestRedis,
} from '../support/redis-server.ts';
import { base, createLane } from './lane.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

const second = 1_000;
const minute = 60 * second;

test('the same account reaches the same phone once in 30 seconds and three times in any 10 minutes', async (t) => {
  const { send, pass } = createLane(server, 'resend');
  t.is(await send(), 'yes');
  t.is(await send({ operation: 'deliver' }), 'resend 30');
  pass(29_999);
  t.is(await send(), 'resend 1');
  pass(1);
  t.is(await send(), 'yes');
  pass(30 * second);
  t.is(await send(), 'yes');
  pass(30 * second);
  t.is(await send(), 'send 510');
  pass(510 * second - 1);
  t.is(await send(), 'send 1');
  pass(1);
  t.is(await send(), 'yes');
});

test('a phone is reached six times in 10 minutes and twenty times in 24 hours by all accounts together', async (t) => {
  const { send, pass } = createLane(server, 'phone');
  let account = 0;
  const fromAnother = () => send({ accountId: `a${account++}`, keyId: `k${account}` });
  for (let round = 0; round < 3; round += 1) {
    for (let call = 0; call < 6; call += 1) t.is(await fromAnother(), 'yes');
    t.is(await fromAnother(), 'recipient_10m 600');
    pass(10 * minute);
  }
  t.is(await fromAnother(), 'yes');
  t.is(await fromAnother(), 'yes');
  t.is(await fromAnother(), `recipient_24h ${86_400 - 1_800}`);
  t.is(await send({ accountId: 'x', phoneKey: 'other' }), 'yes');
});

test('of several full limits the one with the longest wait is reported', async (t) => {
  const { send, pass } = createLane(server, 'longest');
  for (let call = 0; call < 3; call += 1) {
    t.is(await send(), 'yes');
    pass(30 * second);
  }
  pass(-30 * second);
  // The cooldown asks for 30 s, three in ten minutes for 540.
  t.is(await send(), 'send 540');
});

test('a limit further down with a shorter wait does not hide it', async (t) => {
  const { admission, send } = createLane(server, 'hidden');
  const others = Array.from({ length: 99 }, (_, index) => ({ ...base, phoneKey: `p${index}` }));
  await Promise.all(others.map(admission.admit));
  t.is(await send(), 'yes');
  t.is(await send({ phoneKey: 'fresh' }), 'burst 10');
  t.is(await send(), 'resend 30');
});

test('live and test keys do not meet', async (t) => {
  const { send } = createLane(server, 'modes');
  t.is(await send(), 'yes');
  t.is(await send({ mode: 'test' }), 'yes');
  t.is(await send({ mode: 'test' }), 'resend 30');
});

test('a key sends and verifies 300 times a minute together, and verifies touch no recipient', async (t) => {
  const { send, admission, prefix } = createLane(server, 'credential');
  const verify = { ...base, operation: 'verify' } as const;
  const answers = await Promise.all(Array.from({ length: 299 }, () => admission.admit(verify)));
  t.true(answers.every(({ admitted, window }) => admitted && window.length === 0));
  t.deepEqual(
    (await keysUnder(server.redis, prefix)).map((key) => key.slice(prefix.length)),
    ['lim:{a:l:acc}ckey'],
  );
  t.is(await send(), 'yes');
  t.is(await send({ operation: 'verify' }), 'credential 60');
  t.is(await send({ phoneKey: 'other' }), 'credential 60');
  t.is(await send({ operation: 'verify', keyId: 'second' }), 'yes');
});

test('200 sends at once at a limit of 100: exactly 100', async (t) => {
  const { admission } = createLane(server, 'parallel');
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      admission.admit({ ...base, phoneKey: `p${index}`, keyId: `k${index % 7}` }),
    ),
  );
  t.is(answers.filter(({ admitted }) => admitted).length, 100);
  const refusals = answers.flatMap((answer) => (answer.admitted ? [] : [answer.refusal.name]));
  t.deepEqual([...new Set(refusals)], ['burst']);
});

/** Sends of one account to fresh phones, all at once; answers how many are admitted. */
const createVolleys = ({ admission }: ReturnType<typeof createLane>) => {
  let serial = 0;
  return async (count: number): Promise<number> => {
    const requests = Array.from({ length: count }, () => ({
      ...base,
      ...{ phoneKey: `p${serial++}`, keyId: `k${serial % 9}` },
    }));
    const answers = await Promise.all(requests.map(admission.admit));
    return answers.filter(({ admitted }) => admitted).length;
  };
};

test('the account has 300 a minute in whatever bursts they come', async (t) => {
  const lane = createLane(server, 'minute');
  const volley = createVolleys(lane);
  t.is(await volley(101), 100);
  lane.pass(10 * second);
  t.is(await volley(101), 100);
  lane.pass(10 * second);
  t.is(await volley(100), 100);
  lane.pass(10 * second);
  t.is(await volley(1), 0);
  lane.pass(30 * second);
  t.is(await volley(1), 1);
});

test('the account has 18,000 an hour, and room again within a bucket after the hour', async (t) => {
  const lane = createLane(server, 'hour');
  const volley = createVolleys(lane);
  for (let call = 0; call < 180; call += 1) {
    t.is(await volley(100), 100);
    lane.pass(20 * second);
  }
  const refused = await lane.send({ phoneKey: 'late', keyId: 'fresh' });
  const wait = Number(/^hourly (\d+)$/.exec(refused)?.[1]);
  // Buckets of 61,017 ms are let go whole.
  t.true(wait <= 62, refused);
  lane.pass(wait * second);
  t.is(await lane.send({ phoneKey: 'late', keyId: 'fresh' }), 'yes');
});

test('a refusal takes nothing from any limit', async (t) => {
  const { send, prefix, pass } = createLane(server, 'nothing');
  await send();
  await send({ accountId: 'other' });
  pass(second);
  const before = await contentsUnder(server.redis, prefix);
  for (let call = 0; call < 20; call += 1) t.regex(await send(), /^resend/);
  t.deepEqual(await contentsUnder(server.redis, prefix), before);
});

test('without a clock of its own it goes by the server, and the window holds', async (t) => {
  const admission = createAdmission({ redis: server.redis, prefix: `${server.prefix}real:` });
  const [seconds] = await server.redis.time();
  const first = await admission.admit(base);
  t.true(first.admitted && first.receipt !== null && first.receipt.at >= Number(seconds) * second);
  const again = await admission.admit(base);
  const wait = again.admitted ? 0 : again.refusal.retryAfterSeconds;
  t.true(wait > 15 && wait <= 30);
  t.true(!again.admitted && Date.parse(again.refusal.resetAt) > Number(seconds) * second);
});

test('a prefix with braces is refused: it would take the place of the Cluster tags', (t) => {
  const deps = { redis: server.redis, prefix: '{x}:' };
  t.throws(() => createAdmission(deps), { instanceOf: TypeError });
});

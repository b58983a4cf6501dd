// What counts as a failure and what does not: guesses of each kind, attempts nobody looked at, and an end for all of it.
import test from 'ava';
import { fail, ServiceError } from '../../lib/kernel/errors.ts';
import { createThrottle, failuresMax } from '../../lib/security/throttle.ts';
import { createHandClock } from '../support/hand-clock.ts';
import { keysUnder, openTestRedis, type TestRedis } from '../support/redis-server.ts';

let lane: TestRedis;
let serial = 0;

test.before(async () => {
  lane = await openTestRedis();
});
test.after.always(() => lane?.close());

const setUp = (redis = lane.redis) => {
  serial += 1;
  const throttle = createThrottle(redis, `${lane.prefix}${serial}:`, createHandClock());
  const codeOf = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'yes',
      (error: unknown) => (error instanceof ServiceError ? error.code : 'broken'),
    );
  const wrong = () => Promise.reject(fail('INVALID_CREDENTIALS'));
  const full = () => Promise.reject(fail('SERVICE_UNAVAILABLE'));
  const broken = () => Promise.reject(new Error('MySQL is away'));
  const right = () => Promise.resolve();
  type Prove = () => Promise<void>;
  const attempt = (prove: Prove, email = 'a@x.y', source = 's') =>
    codeOf(throttle.attempting({ email, source }, prove));
  const guess = (kind: 'password' | 'code', prove: Prove) =>
    codeOf(throttle.guessing(kind, 'account', prove));
  return { throttle, attempt, guess, wrong, full, broken, right };
};

const times = async <T>(count: number, work: () => Promise<T>): Promise<T[]> => {
  const answers: T[] = [];
  for (let time = 0; time < count; time++) answers.push(await work());
  return answers;
};

test.serial(
  'ten wrong passwords in a row block the pair; what nobody looked at is none of them',
  async (t) => {
    const { attempt, wrong, full, broken, right } = setUp();
    await times(9, () => attempt(wrong));
    t.deepEqual(new Set(await times(20, () => attempt(full))), new Set(['SERVICE_UNAVAILABLE']));
    t.deepEqual(new Set(await times(20, () => attempt(broken))), new Set(['broken']));
    t.is(await attempt(wrong), 'INVALID_CREDENTIALS', 'the tenth');
    t.is(await attempt(right), 'RATE_LIMIT_EXCEEDED');
  },
);

test.serial(
  'an attempt that was given back ends neither the row before it nor another block',
  async (t) => {
    const { attempt, wrong, full, right } = setUp();
    await times(failuresMax, () => attempt(wrong));
    t.is(await attempt(full), 'RATE_LIMIT_EXCEEDED');
    t.is(await attempt(right), 'RATE_LIMIT_EXCEEDED');
  },
);

test.serial(
  'attempts nobody looked at take nothing from the day of an address or a source',
  async (t) => {
    const { attempt, full, wrong } = setUp();
    await times(120, () => attempt(full));
    t.is(await attempt(wrong), 'INVALID_CREDENTIALS');
  },
);

test.serial('an attempt that another limit refuses is no failure of the pair', async (t) => {
  const { throttle, attempt, wrong, right } = setUp();
  // Fifty failures of the address from elsewhere: its day is over.
  for (let source = 0; source < 10; source++) {
    await times(5, () => attempt(wrong, 'a@x.y', `other${source}`));
  }
  t.deepEqual(new Set(await times(12, () => attempt(right))), new Set(['RATE_LIMIT_EXCEEDED']));
  // Room for one: a success elsewhere gives one back.
  await throttle.clear({ email: 'a@x.y', source: 'other0' });
  t.is(await attempt(right), 'yes', 'the pair itself has no failure');
});

test.serial('what an address refuses takes nothing from the day of the source', async (t) => {
  const { attempt, wrong, right } = setUp();
  for (let source = 0; source < 10; source++) {
    await times(5, () => attempt(wrong, 'a@x.y', `other${source}`));
  }
  await times(120, () => attempt(wrong, 'a@x.y', 'mine'));
  t.is(await attempt(right, 'b@x.y', 'mine'), 'yes');
});

test.serial('guesses at the password are not forgiven by a code, nor the reverse', async (t) => {
  for (const [guessed, known] of [
    ['password', 'code'],
    ['code', 'password'],
  ] as const) {
    const { guess, wrong, right } = setUp();
    const codes: string[] = [];
    for (let round = 0; round < 3; round++) {
      codes.push(...(await times(5, () => guess(guessed, wrong))));
      t.is(await guess(known, right), 'yes');
    }
    t.deepEqual(codes.slice(0, 10), Array(10).fill('INVALID_CREDENTIALS'));
    t.deepEqual(codes.slice(10), Array(5).fill('RATE_LIMIT_EXCEEDED'));
  }
});

test.serial('a guess nobody looked at is given back; a right one ends its count', async (t) => {
  const { guess, wrong, full, right } = setUp();
  await times(9, () => guess('password', wrong));
  await times(20, () => guess('password', full));
  t.is(await guess('password', right), 'yes');
  t.deepEqual(
    new Set(await times(9, () => guess('password', wrong))),
    new Set(['INVALID_CREDENTIALS']),
  );
});

test.serial('what was proven stands though Redis is away by then', async (t) => {
  const { redis } = await openTestRedis();
  const { throttle, guess } = setUp(redis);
  const proven = { email: 'a@x.y', source: 's' };
  t.is(await guess('code', async () => redis.disconnect()), 'yes');
  await t.notThrowsAsync(throttle.clear(proven));
  await t.notThrowsAsync(throttle.forget(proven));
  t.is(await guess('code', () => Promise.resolve()), 'broken', 'it was away');
});

test.serial('nothing that is counted stays for ever', async (t) => {
  const { attempt, guess, wrong, full } = setUp();
  await attempt(wrong);
  await attempt(full, 'b@x.y', 'other');
  await guess('password', wrong);
  await guess('code', full);
  const keys = await keysUnder(lane.redis, `${lane.prefix}${serial}:`);
  t.true(keys.length >= 6);
  for (const key of keys) t.true((await lane.redis.pttl(key)) > 0, key);
});

// What counts as a failure and what does not: guesses of each kind, attempts nobody looked at, and an end for all of it.
import test from 'ava';
import { fail, ServiceError } from '../../lib/kernel/errors.ts';
import { createThrottle, failuresMax, perEmailHuman } from '../../lib/security/throttle.ts';
import type { HumanCheck } from '../../lib/signup/human.ts';
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
  const attempt = (prove: Prove, email = 'a@x.y', source = 's', human?: HumanCheck) =>
    codeOf(throttle.attempting({ email, source, trusted: false }, human, prove));
  const known = (prove: Prove, source = 'home') =>
    codeOf(throttle.attempting({ email: 'a@x.y', source, trusted: true }, undefined, prove));
  const guess = (kind: 'password' | 'code', prove: Prove) =>
    codeOf(throttle.guessing(kind, 'account', prove));
  return { throttle, attempt, known, guess, wrong, full, broken, right };
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
  await throttle.clear({ email: 'a@x.y', source: 'other0', trusted: false });
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
  const proven = { email: 'a@x.y', source: 's', trusted: false };
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

/** Fifty failures from ten sources that the account does not know. */
const exhaust = async ({ attempt, wrong }: ReturnType<typeof setUp>): Promise<void> => {
  for (let source = 0; source < 10; source++) {
    await times(5, () => attempt(wrong, 'a@x.y', `other${source}`));
  }
};

test.serial(
  'strangers cannot use up the allowance of a source that the account knows',
  async (t) => {
    const own = setUp();
    const { throttle, attempt, known, wrong, right } = own;
    await exhaust(own);
    t.is(await attempt(right), 'RATE_LIMIT_EXCEEDED', 'a new source waits');
    t.is(await known(right), 'yes');
    await throttle.clear({ email: 'a@x.y', source: 'home', trusted: true });
    t.deepEqual(new Set(await times(10, () => known(wrong))), new Set(['INVALID_CREDENTIALS']));
    t.is(await known(right), 'RATE_LIMIT_EXCEEDED', 'ten failures in a row of its own');
    t.is(await known(right, 'office'), 'yes', 'and another source that it knows');
  },
);

test.serial(
  'failures of a known source take nothing from its address or from others',
  async (t) => {
    const { attempt, known, wrong, right } = setUp();
    for (let source = 0; source < 12; source++)
      await times(9, () => known(wrong, `known${source}`));
    t.is(await attempt(right), 'yes');
  },
);

test.serial(
  'past the limit of strangers the bot check lets an attempt pass, 150 a day',
  async (t) => {
    const own = setUp();
    const { attempt, wrong, right, throttle } = own;
    let checks = 0;
    const human = async () => {
      checks += 1;
    };
    t.is(await attempt(right, 'a@x.y', 's', human), 'yes');
    t.is(checks, 0, 'not asked for before the limit');
    await throttle.clear({ email: 'a@x.y', source: 's', trusted: false });
    await exhaust(own);
    const bot = () => Promise.reject(fail('TURNSTILE_REQUIRED'));
    t.is(await attempt(right, 'a@x.y', 's', bot), 'TURNSTILE_REQUIRED');
    t.is(await attempt(right, 'a@x.y', 's', human), 'yes');
    for (let source = 0; source < 19; source++) {
      await times(8, () => attempt(wrong, 'a@x.y', `person${source}`, human));
    }
    t.is(perEmailHuman.limit, 150);
    t.is(await attempt(right, 'a@x.y', 'last', human), 'RATE_LIMIT_EXCEEDED');
  },
);

test.serial(
  'a wider network may fail five hundred times, however many addresses it has',
  async (t) => {
    const { attempt, wrong } = setUp();
    const network = 'n'.repeat(24);
    const answers: string[] = [];
    for (let each = 0; each < 56; each++) {
      const one = (turn: number) => attempt(wrong, `${each}-${turn}@x.y`, `${network}${each}`);
      for (let turn = 0; turn < 9; turn++) answers.push(await one(turn));
    }
    t.deepEqual(new Set(answers.slice(0, 500)), new Set(['INVALID_CREDENTIALS']));
    t.deepEqual(new Set(answers.slice(500)), new Set(['RATE_LIMIT_EXCEEDED']));
  },
);

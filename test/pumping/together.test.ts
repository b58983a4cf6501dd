// Accounts that pump one block or country together, on a real Redis; open codes, delivers, and sign-ups of one source.
import test from 'ava';
import { openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { ending, endings, spread, start } from './evidence.ts';
import { createLane, hour } from './lane.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server?.close());

type Lane = ReturnType<typeof createLane>;

const minute = 60_000;
const heldAccounts = async (lane: Lane) =>
  (await lane.held()).map(({ accountId }) => accountId).toSorted();

const four = ['a', 'b', 'c', 'd'];

test('four accounts with eight codes each in one block, none entered, are held; a neighbour who verifies is not', async (t) => {
  const lane = createLane(server);
  await lane.count([
    ...endings(4, { accountId: 'good', type: 'otp.verified' }),
    ...endings(9, { accountId: 'good' }),
  ]);
  for (const accountId of four) await lane.count(endings(8, { accountId }));
  t.deepEqual(await heldAccounts(lane), four);
  const [first] = await lane.held();
  t.like(first, {
    ...{ reason: 'across_accounts', early: false, level: 1, accounts: 4, settled: 8 },
    ...{ together: { settled: 32, verified: 0 }, until: start + hour },
  });
  t.like(lane.lines[0]?.fields, { reason: 'across_accounts', accounts: 4, settled_together: 32 });
});

test('an account that had open codes when a block was attacked is not held when they are entered', async (t) => {
  const lane = createLane(server);
  const codes = endings(9, { accountId: 'good', type: 'otp.sent', lastedMs: 2 * minute });
  await lane.count(codes);
  await lane.count(codes.map((event) => ({ ...event, type: 'otp.verified' })));
  for (const accountId of four) await lane.count(endings(8, { accountId }));
  t.deepEqual(await heldAccounts(lane), four);
});

test('codes of others that were entered meanwhile hold nobody', async (t) => {
  const lane = createLane(server);
  const open = Array.from({ length: 60 }, (_, index) =>
    endings(1, { accountId: `n${index}`, type: 'otp.sent', lastedMs: 0 }),
  );
  for (const codes of open) {
    await lane.count(codes);
    await lane.count(codes.map((event) => ({ ...event, type: 'otp.verified' })));
  }
  await lane.count(endings(3, { accountId: 'unlucky' }));
  t.deepEqual(await heldAccounts(lane), []);
});

test('a known good account is held for its own thirty alone', async (t) => {
  const lane = createLane(server);
  await lane.count(spread(50, { accountId: 'known', type: 'otp.verified' }));
  await lane.count(endings(29, { accountId: 'known' }));
  for (const accountId of four) await lane.count(endings(8, { accountId }));
  t.deepEqual(await heldAccounts(lane), four);
  await lane.count(endings(1, { accountId: 'known' }));
  t.deepEqual(await heldAccounts(lane), [...four, 'known'].toSorted());
});

test('accounts that were made from one source count together: one code each is enough', async (t) => {
  const lane = createLane(server);
  const accounts = Array.from({ length: 30 }, (_, index) => `s${index + 10}`);
  await Promise.all(
    accounts.map((accountId, index) =>
      lane.store.rememberSources(accountId, [`host${index}`, 'network']),
    ),
  );
  for (const accountId of accounts) await lane.count(endings(1, { accountId }));
  t.deepEqual(await heldAccounts(lane), accounts);
  const strangers = createLane(server);
  for (const accountId of accounts) await strangers.count(endings(1, { accountId }));
  t.deepEqual(await heldAccounts(strangers), []);
});

test('sixty open codes hold early, thirty that are a minute old too; entered in time, no further hold follows', async (t) => {
  const lane = createLane(server);
  const young = endings(59, { type: 'otp.sent', lastedMs: 0 });
  await lane.count(young);
  t.deepEqual(await lane.held(), []);
  await lane.count(endings(1, { type: 'otp.sent', lastedMs: 0 }));
  t.like(await lane.held(), {
    length: 1,
    0: { early: true, level: 0, until: start + 10 * minute },
  });
  await lane.count(young.map((event) => ({ ...event, type: 'otp.verified' })));
  lane.pass(10 * minute);
  await lane.count([ending({ at: lane.now() })]);
  t.is((await lane.held())[0]?.until, start + 10 * minute);
  const old = createLane(server);
  await old.count(endings(30, { type: 'otp.sent', lastedMs: minute }));
  t.like(await old.held(), { length: 1, 0: { early: true } });
});

test('an early hold becomes one of an hour when its codes settle unentered', async (t) => {
  const lane = createLane(server);
  const open = endings(30, { type: 'otp.sent', lastedMs: minute });
  await lane.count(open);
  lane.pass(4 * minute);
  const ended = open.map((event) => ({ ...event, type: 'otp.expired', at: lane.now() }));
  await lane.count(ended);
  t.like(await lane.held(), {
    length: 1,
    0: { early: false, level: 1, until: lane.now() + hour, settled: 30 },
  });
});

test('delivers that nobody verifies are held by missing receipts, and by going to one block', async (t) => {
  const lane = createLane(server);
  const deliver = { origin: 'deliver', accountId: 'silent' } as const;
  await lane.count(endings(30, { ...deliver, type: 'otp.failed', failureReason: 'not_delivered' }));
  t.like(await lane.held(), { length: 1, 0: { reason: 'undelivered', accountId: 'silent' } });
  const other = createLane(server);
  await other.count(endings(89, { ...deliver, arrived: true }));
  t.deepEqual(await other.held(), []);
  await other.count(endings(1, { ...deliver, arrived: true }));
  t.like(await other.held(), { length: 1, 0: { reason: 'concentrated' } });
});

test('receipts that are late for everybody hold nobody whose delivers go to many blocks', async (t) => {
  const lane = createLane(server);
  await lane.count(spread(300, { origin: 'deliver', type: 'otp.sent', lastedMs: 2 * minute }));
  await lane.count(endings(40, { origin: 'deliver', type: 'otp.sent', lastedMs: 2 * minute }));
  t.deepEqual(await lane.held(), []);
});

test('an account that spreads codes over a country is held there, with no block of its own held', async (t) => {
  const lane = createLane(server);
  const numbers = (count: number, course: object) =>
    Array.from({ length: count }, (_, index) =>
      ending({ phone: `+2010${10_000 + index}4567`, country: 'EG', ...course }),
    );
  await lane.count(numbers(299, {}));
  t.deepEqual(await lane.held(), []);
  await lane.count(numbers(1, {}));
  t.like(await lane.held(), { length: 1, 0: { prefix: null, country: 'EG', settled: 300 } });
  t.is(lane.lines.at(-1)?.message, 'country held');
  const split = createLane(server);
  await split.count(numbers(300, { accountId: 'good', type: 'otp.verified' }));
  for (const accountId of four) {
    split.pass(5_000);
    await split.count(numbers(80, { accountId }));
  }
  t.deepEqual(await heldAccounts(split), four);
});

test('what a group and an account keep is bounded', async (t) => {
  const lane = createLane(server);
  const share = (index: number) => ({
    ...{ accountId: `b${index}`, good: false, sources: [], settled: 1, verified: 0, open: 0 },
    ...{ fault: 'unverified' as const, spent: false },
  });
  for (let index = 0; index < 510; index++) {
    const change = { field: `b${index}`, share: { ...share(index), settled: index } };
    await lane.store.changeGroup('g', [change], start);
  }
  const left = await lane.store.changeGroup('g', [], start);
  t.is(left.length, 500);
  t.true(
    left.every(({ settled }) => settled >= 10),
    'the lightest left',
  );
  t.deepEqual(
    await lane.store.changeGroup('g', [], start + hour),
    [],
    'a window later none is left',
  );
});

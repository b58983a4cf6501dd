// Holds on a real Redis: begun once, doubled, forgotten, and announced whatever dies in between.
import test from 'ava';
import { createPumpingCounter } from '../../lib/pumping/count.ts';
import { forgetMs } from '../../lib/pumping/rules.ts';
import { openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { ending, endings, start } from './evidence.ts';
import { createLane, hour, prefixKey } from './lane.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server?.close());

test('the thirtieth code that nobody entered holds the prefix for an hour, for all processes to see', async (t) => {
  const lane = createLane(server);
  await lane.count(endings(29));
  t.deepEqual(await lane.held(), []);
  await lane.count([ending()]);
  t.like(await lane.held(), {
    length: 1,
    0: {
      ...{ accountId: 'a1', prefixKey, prefix: '+1415*******', country: 'US' },
      ...{ level: 1, since: start, until: start + hour, settled: 30, verified: 0 },
    },
  });
  t.is(lane.lines.length, 1);
  t.like(lane.lines[0], { message: 'prefix held', fields: { account_id: 'a1', level: 1 } });
  t.notRegex(JSON.stringify(lane.lines), /415555/);
});

test('evidence is spent by its hold; codes sent before the hold ended never count for the next', async (t) => {
  const lane = createLane(server);
  await lane.count(endings(30));
  lane.pass(4 * 60_000);
  await lane.count(endings(200, { at: lane.now() }));
  lane.pass(hour);
  await lane.count(endings(29, { at: lane.now(), lastedMs: 1_000 }));
  t.is((await lane.held())[0]?.until, start + hour);
  await lane.count(endings(1, { at: lane.now(), lastedMs: 1_000 }));
  t.like((await lane.held())[0], { level: 2, since: lane.now(), until: lane.now() + 2 * hour });
});

test('further holds double up to a day, and a day without one is forgotten', async (t) => {
  const lane = createLane(server);
  const hours: number[] = [];
  const attack = async () => {
    await lane.count(endings(30, { at: lane.now(), lastedMs: 0 }));
    const [hold] = await lane.held();
    if (hold === undefined) return t.fail('no hold');
    hours.push((hold.until - lane.now()) / hour);
    lane.pass(hold.until - lane.now());
  };
  for (let again = 0; again < 7; again++) await attack();
  lane.pass(forgetMs);
  await attack();
  t.deepEqual(hours, [1, 2, 4, 8, 16, 24, 24, 1]);
});

test('two workers with the same evidence begin one hold', async (t) => {
  const lane = createLane(server);
  const others = Array.from({ length: 4 }, () => createPumpingCounter(lane.deps));
  const events = endings(60);
  await Promise.all(others.map(({ count }) => count(events)));
  t.is((await lane.held())[0]?.level, 1);
  t.is(lane.lines.length, 1);
});

test('a worker that dies between hold and announcement: the redelivered event announces it', async (t) => {
  const lane = createLane(server);
  const events = endings(30);
  const { publish } = lane.store;
  lane.store.publish = () => Promise.reject(new Error('died'));
  const dying = createPumpingCounter({ ...lane.deps, store: lane.store });
  await t.throwsAsync(dying.count(events));
  t.deepEqual(await lane.held(), []);
  lane.store.publish = publish;
  await createPumpingCounter({ ...lane.deps, store: lane.store }).count(events);
  t.like(await lane.held(), { length: 1, 0: { level: 1, until: start + hour } });
});

test('saying a hold again changes nothing, and holds that are over leave the set', async (t) => {
  const lane = createLane(server);
  const events = endings(30);
  await lane.count(events);
  const first = await lane.store.heldSince(undefined);
  await lane.count(events);
  t.is(await lane.store.heldSince(first?.epoch), undefined);
  lane.pass(hour);
  await lane.count(endings(30, { accountId: 'a2', at: lane.now() }));
  t.deepEqual(
    (await lane.held()).map(({ accountId }) => accountId),
    ['a2'],
  );
});

test('shadow decides the same and says so', async (t) => {
  const lane = createLane(server, { mode: () => 'shadow' });
  await lane.count(endings(30));
  t.is(lane.lines[0]?.message, 'prefix would be held');
  t.is((await lane.held()).length, 1);
});

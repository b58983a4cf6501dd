// Evidence on a real Redis: each message once in any order, and whose messages are none.
import test from 'ava';
import fc from 'fast-check';
import { platformAccountId, playgroundAccountId } from '../../lib/accounts/platform.ts';
import { parseAllowed, windowMs } from '../../lib/pumping/rules.ts';
import { contentsUnder, openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { ending, endings, spread, start } from './evidence.ts';
import { createLane, hour } from './lane.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server?.close());

test('one in ten verified, failures, the sandbox and other prefixes hold nothing', async (t) => {
  const lane = createLane(server);
  await lane.count(endings(3, { type: 'otp.verified' }));
  await lane.count(endings(27));
  await lane.count(endings(100, { type: 'otp.failed', phone: '+201001234567' }));
  await lane.count(endings(100, { mode: 'test', phone: '+201001234567' }));
  await lane.count(
    Array.from({ length: 100 }, (_, index) => ending({ phone: `+49301${100 + index}4567` })),
  );
  await lane.count(endings(29, { accountId: 'a2' }));
  t.deepEqual(await lane.held(), []);
  t.deepEqual(await lane.tally(), { settled: 30, verified: 3 });
});

test('each message counts once, verified beats expired, whatever the order, repetition and batches', async (t) => {
  const course = fc.record({
    type: fc.constantFrom('otp.verified', 'otp.expired'),
    both: fc.boolean(),
    at: fc.integer({ min: start - windowMs + 1, max: start }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(course, { maxLength: 29 }), fc.gen(), async (courses, gen) => {
      const lane = createLane(server);
      const events = courses.flatMap(({ type, both, at }) => {
        const event = ending({ type, at });
        return both ? [event, { ...event, type: 'otp.verified' }] : [event];
      });
      const told = [...events, ...events].toSorted(() => (gen(fc.boolean) ? 1 : -1));
      while (told.length > 0)
        await lane.count(told.splice(0, gen(fc.integer, { min: 1, max: 20 })));
      const verified = courses.filter(({ type, both }) => both || type === 'otp.verified').length;
      t.deepEqual(await lane.tally(), { settled: courses.length, verified });
    }),
    { numRuns: 25 },
  );
});

test('the window rolls: what is an hour old is no evidence any more', async (t) => {
  const lane = createLane(server);
  await lane.count(endings(20));
  lane.pass(windowMs);
  await lane.count(endings(29, { at: lane.now() }));
  t.deepEqual(await lane.held(), []);
  await lane.count([ending({ at: lane.now() })]);
  t.is((await lane.held())[0]?.settled, 30);
});

test('delivers that arrive in many blocks, of an account that never verifies, are not judged, its sends are', async (t) => {
  const lane = createLane(server);
  await lane.count(spread(200, { origin: 'deliver', arrived: true }));
  t.deepEqual(await lane.held(), []);
  await lane.count(endings(30, { origin: 'send' }));
  t.is((await lane.held())[0]?.settled, 30);
});

test('delivers are judged once thirty were verified in a day, and no longer when the account stops', async (t) => {
  const lane = createLane(server);
  const elsewhere = { origin: 'deliver', phone: '+201001234567' } as const;
  await lane.count(endings(29, { ...elsewhere, type: 'otp.verified' }));
  await lane.count(spread(200, { origin: 'deliver', arrived: true }));
  t.deepEqual(await lane.held(), []);
  lane.pass(23 * hour);
  await lane.count([ending({ ...elsewhere, type: 'otp.verified', at: lane.now() })]);
  const later = { accountId: 'a1', origin: 'deliver', at: lane.now() } as const;
  await lane.count(endings(30, { ...later, phone: '+4930123456' }));
  t.is((await lane.held())[0]?.country, 'US');
  lane.pass(2 * hour);
  await lane.count(spread(200, { ...later, at: lane.now(), arrived: true }));
  t.is((await lane.held()).length, 1);
});

test('who is on the allow-list is not counted, nor anybody when the guard is off', async (t) => {
  const allowing = createLane(server, { allowed: parseAllowed('a9', '+14155') });
  await allowing.count(endings(30));
  await allowing.count(endings(600, { accountId: 'a9', phone: '+201001234567' }));
  const off = createLane(server, { mode: () => 'off' });
  await off.count(endings(600));
  for (const { prefix, lines } of [allowing, off]) {
    t.deepEqual(await contentsUnder(server.redis, prefix), {});
    t.deepEqual(lines, []);
  }
});

test('codes to owners who forgot their password hold no block of numbers; what strangers do in the playground does', async (t) => {
  const lane = createLane(server);
  await lane.count(endings(600, { accountId: platformAccountId }));
  t.deepEqual(await contentsUnder(server.redis, lane.prefix), {});
  await lane.count(endings(30, { accountId: playgroundAccountId }));
  t.deepEqual(
    (await lane.held()).map(({ accountId }) => accountId),
    [playgroundAccountId],
  );
});

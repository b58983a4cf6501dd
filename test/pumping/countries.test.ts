// Countries on a real Redis: an alarm once an hour, counted over all accounts, and never a hold.
import test from 'ava';
import { createPumpingCounter } from '../../lib/pumping/count.ts';
import { judgedFrom } from '../../lib/pumping/rules.ts';
import { openTestRedis, type TestRedis } from '../support/redis-server.ts';
import { ending, start } from './evidence.ts';
import { createLane, hour } from './lane.ts';

let server: TestRedis;
test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server?.close());

test('a country that hardly converts is told once an hour, across all accounts, with no number', async (t) => {
  const lane = createLane(server);
  const spread = (
    count: number,
    at: number,
    type: 'otp.verified' | 'otp.expired' = 'otp.expired',
  ) =>
    Array.from({ length: count }, (_, index) =>
      ending({
        accountId: `s${index}`,
        phone: `+2010${10_000 + index}4567`,
        country: 'EG',
        at,
        type,
      }),
    );
  const said = () => lane.lines.filter(({ fields }) => fields.country === 'EG').length;
  await lane.count(spread(30, start, 'otp.verified'));
  lane.pass(10_000);
  await lane.count(spread(440, lane.now()));
  lane.pass(10_000);
  await lane.count(spread(10, lane.now()));
  t.is(said(), 0, 'not enough');
  lane.pass(10_000);
  await lane.count(spread(60, lane.now()));
  t.is(said(), 1);
  t.like(lane.lines[0]?.fields, { country: 'EG', window_seconds: 3_600 });
  const { settled, verified } = lane.lines[0]?.fields ?? {};
  t.true(Math.abs(Number(settled) - 540) < 540 * 0.03 && Math.abs(Number(verified) - 30) <= 2);
  t.notRegex(JSON.stringify(lane.lines), /4567/);
  lane.pass(10_000);
  await lane.count(spread(60, lane.now()));
  await createPumpingCounter(lane.deps).count(spread(60, lane.now()));
  t.is(said(), 1, 'once an hour, whichever process');
  lane.pass(hour);
  await lane.count(spread(judgedFrom.country + 20, lane.now()));
  t.is(said(), 2);
  t.deepEqual(await lane.held(), [], 'a country is never held');
});

test('a country that converts says nothing, and one message told often is one', async (t) => {
  const lane = createLane(server);
  const phone = (index: number) => `+2010${10_000 + index}4567`;
  const some = Array.from({ length: 100 }, (_, index) =>
    ending({ accountId: `s${index}`, phone: phone(index), country: 'EG' }),
  );
  for (let again = 0; again < 8; again++) {
    await lane.count(some);
    lane.pass(10_000);
  }
  t.deepEqual(lane.lines, []);
});

// Rules of reports: marks are taken only after their slot is over everywhere, and answers say up to when they count.
import test from 'ava';
import { countedUntil, dueSlot, slotMs, slotOf } from '../../lib/reports/rules.ts';

test('a slot is due when it is over even for a clock two seconds behind', (t) => {
  const now = 1_000 * slotMs;
  const marked = slotOf(now);
  t.true(dueSlot(now + slotMs) < marked);
  t.true(dueSlot(now + slotMs + 1_999) < marked);
  t.is(dueSlot(now + slotMs + 2_000), marked);
});

test('as_of is the oldest news that is not counted, or now', (t) => {
  const now = 1_000 * slotMs + 700;
  t.is(countedUntil({ oldest: undefined, heard: undefined }, now), now);
  t.is(countedUntil({ oldest: 990, heard: now }, now), 990 * slotMs);
  t.is(countedUntil({ oldest: 1_000, heard: undefined }, now), 1_000 * slotMs);
  t.is(countedUntil({ oldest: 5_000, heard: now * 9 }, now), now, 'a clock ahead of ours');
  t.is(
    countedUntil({ oldest: 990, heard: 5_000 }, now),
    3_000,
    'what nobody heard of is not marked',
  );
});

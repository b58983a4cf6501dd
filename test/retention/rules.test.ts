// Weeks of the logs: named by their Monday, always enough ahead, dropped only when all of them is past.
import test from 'ava';
import fc from 'fast-check';
import { day } from '../../lib/kernel/clock.ts';
import {
  firstName,
  lastName,
  mondayOf,
  nameOf,
  week,
  weekOf,
} from '../../lib/kernel/partitions.ts';
import {
  keptFrom,
  weeksAhead,
  weeksLeft,
  weeksToAdd,
  weeksToDrop,
} from '../../lib/retention/rules.ts';

const moments = fc.integer({ min: Date.UTC(2024, 0, 1), max: Date.UTC(2040, 0, 1) });

test('a week begins on Monday and holds every moment up to the next', (t) => {
  t.is(nameOf(weekOf(Date.UTC(2026, 10, 29, 23, 59))), 'w20261123');
  t.is(nameOf(weekOf(Date.UTC(2026, 10, 30))), 'w20261130');
  fc.assert(
    fc.property(moments, (at) => {
      const monday = weekOf(at);
      t.is(new Date(monday).getUTCDay(), 1);
      t.true(monday <= at && at < monday + week);
      t.is(mondayOf(nameOf(monday)), monday);
    }),
  );
  t.is(mondayOf(firstName), undefined);
  t.is(mondayOf(lastName), undefined);
  t.is(mondayOf('p0'), undefined);
});

test('whenever the upkeep ran last, weeks follow without a gap and nothing young is dropped', (t) => {
  fc.assert(
    fc.property(
      moments,
      fc.array(fc.integer({ min: 0, max: 100 * day }), { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 30, max: 400 }),
      (start, pauses, keepDays) => {
        let now = start;
        let names = [firstName, ...weeksToAdd([], now).map(nameOf), lastName];
        for (const pause of pauses) {
          now += pause;
          names = [...names.slice(0, -1), ...weeksToAdd(names, now).map(nameOf), lastName];
          const dropped = weeksToDrop(names, now, keepDays * day);
          const from = keptFrom(names, dropped);
          names = names.filter((name) => !dropped.includes(name));
          const mondays = names.map(mondayOf).filter((monday) => monday !== undefined);
          t.deepEqual(
            mondays,
            mondays.map((_, index) => (mondays[0] ?? 0) + index * week),
          );
          t.true(weeksLeft(names, now) >= weeksAhead);
          t.true(mondays.includes(weekOf(now)));
          if (from !== undefined) {
            t.true(from <= now - keepDays * day, 'only what is past');
            t.is(mondays[0], from);
          }
          // What is left is past its time by less than a week, unless it is older than all weeks.
          if (!names.includes(firstName)) t.true((mondays[0] ?? 0) + week > now - keepDays * day);
        }
      },
    ),
  );
});

// Moments: what RFC 3339 and the calendar know is read, all else is refused.
import test from 'ava';
import { readMoment } from '../../lib/kernel/moment.ts';

test('a date is its midnight in UTC, and an offset is taken off', (t) => {
  t.is(readMoment('2026-11-20'), Date.UTC(2026, 10, 20));
  t.is(readMoment('2028-02-29'), Date.UTC(2028, 1, 29));
  t.is(readMoment('2026-01-01T00:30:00+02:00'), Date.UTC(2025, 11, 31, 22, 30));
  t.is(readMoment('2026-03-29T02:30:00-09:30'), Date.UTC(2026, 2, 29, 12));
  t.is(readMoment('2026-11-20t12:00:00z'), Date.UTC(2026, 10, 20, 12));
  t.is(readMoment('2026-11-20T23:59Z'), Date.UTC(2026, 10, 20, 23, 59));
});

test('what is finer than a millisecond ends up at the next one', (t) => {
  const noon = Date.UTC(2026, 10, 20, 12);
  const expected: [string, number][] = [
    ...([
      ['0', 0],
      ['5', 500],
      ['29', 290],
      ['123', 123],
      ['999', 999],
    ] as const),
    ...([
      ['0001', 1],
      ['1230', 123],
      ['1230001', 124],
      ['000000001', 1],
      ['9999', 1000],
    ] as const),
  ].map(([fraction, ms]) => [`2026-11-20T12:00:00.${fraction}Z`, noon + ms]);
  for (const [text, at] of expected) t.is(readMoment(text), at, text);
});

test('days and times that are not are none', (t) => {
  const wrong = [
    ...['2026-02-29', '2026-02-30', '2026-04-31', '2026-13-01', '2026-00-10', '2026-11-00'],
    ...['2026-04-31T00:00:00Z', '2026-11-20T24:00:00Z', '2026-11-20T12:60:00Z'],
    ...['2026-11-20T12:00:00', '2026-11-20T12:00:00+24:00', '2026-11-20T12:00:00 02:00'],
    ...['2026-11-20T12:00.5Z', '2026-11-20T12:00:00.Z', '2026-11-20T12:00:00.1234567890Z'],
    ...['2026-11-20 12:00:00Z', '20261120', '1700000000', 'yesterday', '', '+012026-11-20'],
    ...['1969-12-31', '1970-01-01T00:00:00+01:00', '2026-11-20T12:00:00Z\n'],
  ];
  for (const text of wrong) t.is(readMoment(text), undefined, text);
});

// The pumping guard's decisions: what is evidence, when a prefix is held, for how long, and who is left alone.
import test from 'ava';
import fc from 'fast-check';
import {
  evidenceOf,
  forgetMs,
  type Hold,
  holdMs,
  isAllowed,
  isPumped,
  judgedFrom,
  maskPrefix,
  nextHold,
  parseAllowed,
  prefixOf,
  windowMs,
} from '../../lib/pumping/rules.ts';
import { ending, start } from './evidence.ts';

const hour = 3_600_000;
const tally = { settled: 30, verified: 0 };

test('thirty settled with fewer than one in ten verified is pumping; twenty-nine or one in ten is not', (t) => {
  t.true(isPumped({ settled: 30, verified: 2 }, judgedFrom.prefix));
  t.false(isPumped({ settled: 30, verified: 3 }, judgedFrom.prefix));
  t.false(isPumped({ settled: 29, verified: 0 }, judgedFrom.prefix));
  t.true(isPumped({ settled: 500, verified: 49 }, judgedFrom.country));
  t.false(isPumped({ settled: 499, verified: 0 }, judgedFrom.country));
});

test('of the same messages, more verified ones never speak for a hold', (t) => {
  fc.assert(
    fc.property(fc.nat(5_000), fc.nat(5_000), fc.nat(5_000), (settled, one, other) => {
      const [fewer, more] = [Math.min(one, other), Math.max(one, other)];
      const held = (verified: number) => isPumped({ settled, verified }, judgedFrom.prefix);
      t.true(held(fewer) || !held(more));
    }),
  );
});

test('holds in a row last 1, 2, 4, 8, 16 and then 24 hours', (t) => {
  t.deepEqual(
    [1, 2, 3, 4, 5, 6, 7, 2_000].map((level) => holdMs(level) / hour),
    [1, 2, 4, 8, 16, 24, 24, 24],
  );
});

test('a day without a hold is forgotten: the next one is a first one', (t) => {
  const first = nextHold(undefined, tally, start);
  t.deepEqual(first, {
    ...tally,
    level: 1,
    since: start,
    until: start + hour,
    spent: start + hour,
  });
  const second = nextHold(first, tally, first.until + forgetMs - 1);
  t.is(second.level, 2);
  t.is(second.until - second.since, 2 * hour);
  t.is(nextHold(second, tally, second.until + forgetMs).level, 1);
});

test('whatever the history, a hold begins now, is no shorter than the one before it in a row, and ends in a day', (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat(3 * forgetMs), { minLength: 1, maxLength: 40 }), (pauses) => {
      let last: Hold | undefined;
      let now = start;
      for (const pause of pauses) {
        now = (last?.until ?? now) + pause;
        const next = nextHold(last, tally, now);
        const length = next.until - next.since;
        t.is(next.since, now);
        t.true(length >= hour && length <= 24 * hour);
        if (last && pause < forgetMs) t.true(length >= last.until - last.since);
        else t.is(length, hour);
        last = next;
      }
    }),
  );
});

test('verified and expired live messages are evidence; failed ones, the sandbox and what is old are not', (t) => {
  const seen = (course: Parameters<typeof ending>[0]) =>
    evidenceOf(ending({ at: start, ...course }), start)?.sign;
  t.is(seen({ type: 'otp.verified' }), 'verified');
  t.is(seen({ type: 'otp.expired' }), 'expired');
  t.is(seen({ type: 'otp.failed' }), 'failed', 'takes an open code back');
  t.is(seen({ mode: 'test' }), undefined);
  t.is(seen({ at: start - windowMs }), undefined);
  t.is(seen({ at: start - windowMs + 1 }), 'expired');
  const linked = { ...ending(), type: 'telegram.linked', message: null };
  t.is(evidenceOf(linked, start), undefined);
});

test('a message was sent when a channel took it; when nobody knows, when its id was made', (t) => {
  const event = ending({ at: start, lastedMs: 60_000 });
  t.is(evidenceOf(event, start)?.sentAt, start - 60_000);
  const unknown = { ...event, data: { ...event.data, accepted_at: null } };
  const made = evidenceOf(unknown, start)?.sentAt ?? 0;
  t.true(Math.abs(made - Date.now()) < 60_000);
});

test('a prefix is a number without its last four digits, and is masked before it is shown', (t) => {
  t.is(prefixOf('+201001234567'), '+20100123');
  t.is(maskPrefix(prefixOf('+201001234567')), '+2010********');
  t.is(maskPrefix(prefixOf('+14155550123')), '+1415*******');
  t.is(maskPrefix(prefixOf('+2901234')), '+2******');
});

test('a mask never shows the last two digits of a prefix, nor more than four', (t) => {
  const phones = fc.stringMatching(/^\+[1-9]\d{6,14}$/);
  fc.assert(
    fc.property(phones, (phone) => {
      const shown = maskPrefix(prefixOf(phone)).replaceAll('*', '');
      t.true(phone.startsWith(shown));
      t.true(shown.length <= 5 && shown.length <= phone.length - 6);
      t.is(maskPrefix(prefixOf(phone)).length, phone.length);
    }),
  );
});

test('allow-lists name accounts and beginnings of numbers', (t) => {
  const allowed = parseAllowed('a1,a2', '+20,+1415555');
  t.true(isAllowed(allowed, 'a2', '+4930123456'));
  t.true(isAllowed(allowed, 'a3', '+201001234567'));
  t.false(isAllowed(allowed, 'a3', '+14155540123'));
  t.false(isAllowed(parseAllowed('', ''), '', '+14155540123'));
});

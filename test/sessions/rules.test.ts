// What a refresh token may still do (reference 06 section 5).
import test from 'ava';
import { graceMs, judgeRefresh } from '../../lib/sessions/rules.ts';

const now = 1_000_000;
const current = { generation: 5 };

test('an unused token rotates', (t) => {
  t.is(judgeRefresh({ generation: 5, usedAt: null, uses: 0 }, current, now), 'rotate');
});

test('the immediate predecessor counts once more within the grace', (t) => {
  const token = { generation: 4, usedAt: now - graceMs, uses: 1 };
  t.is(judgeRefresh(token, current, now), 'grace');
  t.is(judgeRefresh(token, current, now + 1), 'reuse');
  t.is(judgeRefresh({ ...token, uses: 2 }, current, now), 'reuse');
});

test('an older ancestor never counts, however recent', (t) => {
  t.is(judgeRefresh({ generation: 3, usedAt: now, uses: 1 }, current, now), 'reuse');
});

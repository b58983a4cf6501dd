// What a refresh token may still do (reference 06 section 5).
import test from 'ava';
import { graceMs, judgeRefresh } from '../../lib/sessions/rules.ts';

const now = 1_000_000;
const line = { generation: 5, forkedAt: null };

test('an unused token of the present generation rotates', (t) => {
  t.is(judgeRefresh({ generation: 5, usedAt: null, uses: 0 }, line, now), 'rotate');
});

test('the immediate predecessor counts once more within the grace', (t) => {
  const token = { generation: 4, usedAt: now - graceMs, uses: 1 };
  t.is(judgeRefresh(token, line, now), 'grace');
  t.is(judgeRefresh(token, line, now + 1), 'reuse');
  t.is(judgeRefresh({ ...token, uses: 2 }, line, now), 'reuse');
});

test('an older ancestor never counts, however recent', (t) => {
  t.is(judgeRefresh({ generation: 3, usedAt: now, uses: 1 }, line, now), 'reuse');
});

test('an unused token that was overtaken counts for the grace after the fork, then never', (t) => {
  const sibling = { generation: 4, usedAt: null, uses: 0 };
  const forked = { generation: 5, forkedAt: now - graceMs };
  t.is(judgeRefresh(sibling, forked, now), 'grace');
  t.is(judgeRefresh(sibling, forked, now + 1), 'reuse');
  t.is(judgeRefresh(sibling, line, now), 'reuse', 'without a fork there is no sibling');
  t.is(judgeRefresh({ ...sibling, generation: 3 }, forked, now), 'reuse');
});

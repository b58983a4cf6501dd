// Turns: work begins as far as its size allows, in order, and the rest waits.
import test from 'ava';
import { createTurns } from '../../../lib/infra/queue/turns.ts';

test('as much is begun as fits, in order, and one alone always fits', (t) => {
  const turns = createTurns(100);
  const begun: string[] = [];
  const take = (name: string, bytes: number) => turns.take(bytes, () => begun.push(name));
  take('large', 300);
  take('small', 60);
  take('other', 60);
  take('tiny', 1);
  t.deepEqual(begun, ['large']);
  turns.end(300);
  t.deepEqual(begun, ['large', 'small'], 'what is small does not pass what waits before it');
  turns.end(60);
  t.deepEqual(begun, ['large', 'small', 'other', 'tiny']);
});

test('what has not begun can be forgotten, and what comes later begins', (t) => {
  const turns = createTurns(10);
  const begun: string[] = [];
  turns.take(10, () => begun.push('first'));
  turns.take(10, () => begun.push('forgotten'));
  t.is(turns.waiting(), 1);
  turns.clear();
  turns.end(10);
  turns.take(10, () => begun.push('later'));
  t.deepEqual(begun, ['first', 'later']);
});

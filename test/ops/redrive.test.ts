// Redriving while the process is killed: the small version of test/faults/redrive.ts.
import test from 'ava';
import { isSound, redriveUnderFire } from '../faults/redrive.ts';
import { type Stack, startStack } from '../support/stack.ts';

let stack: Stack;

test.before(async () => {
  stack = await startStack('opsredrive', { workers: [] });
});

test.after.always(() => stack?.close());

test('500 letters, killed twice in the middle: each is delivered or still dead, none twice', async (t) => {
  const fire = { letters: 500, kills: 2, perSecond: 400, say: (line: string) => t.log(line) };
  const burnt = await redriveUnderFire(stack, fire);
  t.true(isSound(burnt, 500), JSON.stringify(burnt));
  // Else it was not in the middle.
  for (const { delivered, dead } of burnt.afterKills) t.true(delivered > 0 && dead > 0);
  t.is(burnt.interrupted, 2);
});

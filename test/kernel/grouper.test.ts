// Grouping: who is grouped with whom, whose result is whose, and what an error costs.
import test from 'ava';
import { createGrouper } from '../../lib/kernel/grouper.ts';

const double = (groups: number[][]) => async (items: number[]) => {
  groups.push(items);
  await Promise.resolve();
  return items.map((item) => item * 2);
};

test('a full group runs at once, the rest when the first has waited; each gets its own result', async (t) => {
  const groups: number[][] = [];
  const grouper = createGrouper({ maxSize: 3, maxWaitMs: 1, run: double(groups) });
  const results = await Promise.all([1, 2, 3, 4].map((item) => grouper.add(item)));
  t.deepEqual(results, [2, 4, 6, 8]);
  t.deepEqual(groups, [[1, 2, 3], [4]]);
});

test('groups run one after the other, and what came meanwhile is one group', async (t) => {
  const groups: number[][] = [];
  const gates: (() => void)[] = [];
  const grouper = createGrouper<number, number>({
    ...{ maxSize: 100, maxWaitMs: 0 },
    run: async (items) => {
      groups.push(items);
      await new Promise<void>((resolve) => gates.push(resolve));
      return items;
    },
  });
  const first = grouper.add(0);
  while (groups.length === 0) await new Promise(setImmediate);
  const later = [1, 2, 3].map((item) => grouper.add(item));
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  t.is(groups.length, 1);
  gates[0]?.();
  await first;
  while (groups.length === 1) await new Promise(setImmediate);
  gates[1]?.();
  t.deepEqual(await Promise.all(later), [1, 2, 3]);
  t.deepEqual(groups, [[0], [1, 2, 3]]);
});

test('behind a large group the next one gathers; behind a small one nobody waits', async (t) => {
  const groups: number[][] = [];
  const grouper = createGrouper({
    ...{ maxSize: 100, maxWaitMs: 0, busy: { items: 3, waitMs: 300 }, run: double(groups) },
  });
  await Promise.all([1, 2, 3].map((item) => grouper.add(item)));
  const first = grouper.add(4);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await Promise.all([first, grouper.add(5)]);
  t.deepEqual(groups, [
    [1, 2, 3],
    [4, 5],
  ]);
  await grouper.add(6);
  t.deepEqual(groups.at(-1), [6]);
});

test('an error is everybody’s, unless one item may be to blame: then each is tried alone', async (t) => {
  const run = (items: number[]) =>
    items.includes(13)
      ? Promise.reject(new Error(`unlucky ${items.length}`))
      : Promise.resolve(items);
  const options = { maxSize: 3, maxWaitMs: 1, run };
  const together = createGrouper(options);
  const all = await Promise.allSettled([1, 13, 2].map((item) => together.add(item)));
  t.deepEqual(new Set(all.map(({ status }) => status)), new Set(['rejected']));
  t.is(await together.add(4), 4, 'the next group is not affected');
  const apart = createGrouper({ ...options, blamesOne: () => true });
  const each = await Promise.allSettled([1, 13, 2].map((item) => apart.add(item)));
  t.deepEqual(
    each.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
});

test('drain waits for everything that was added, and does not fail for it', async (t) => {
  const groups: number[][] = [];
  const grouper = createGrouper({ maxSize: 10, maxWaitMs: 60_000, run: double(groups) });
  const added = [1, 2].map((item) => grouper.add(item));
  await grouper.drain();
  t.deepEqual(groups, [[1, 2]]);
  t.deepEqual(await Promise.all(added), [2, 4]);
  await grouper.drain();
  const broken = createGrouper<number, number>({
    ...{ maxSize: 10, maxWaitMs: 60_000 },
    run: () => Promise.reject(new Error('no')),
  });
  const failing = t.throwsAsync(broken.add(1), { message: 'no' });
  await broken.drain();
  await failing;
});

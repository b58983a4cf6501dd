// Shards: whom a piece of news reaches.
import test from 'ava';
import { everybody, shardOf } from '../../lib/accounts/shards.ts';
import { newId } from '../../lib/kernel/ids.ts';

test('accounts have shards of their own, spread evenly, and never that of everybody', (t) => {
  const counts = new Map<number, number>();
  for (let made = 0; made < 6_200; made++) {
    const shard = shardOf(newId());
    counts.set(shard, (counts.get(shard) ?? 0) + 1);
  }
  t.false(counts.has(everybody));
  t.is(counts.size, 62);
  // The column of the table holds one byte.
  t.true([...counts.keys()].every((shard) => shard > everybody && shard < 256));
  t.true([...counts.values()].every((count) => count > 40 && count < 180));
  t.is(shardOf(), everybody);
});

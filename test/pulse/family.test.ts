// Families of metrics: what is unknown is left out, and a family that would grow without a bound does not.
import test from 'ava';
import { Registry } from 'prom-client';
import { counterFamily, durationFamily, readCounter, readGauge } from '../../lib/pulse/family.ts';

const named = (labels: string[] = []) => {
  const registry = new Registry();
  return { registry, name: 'x', help: 'X.', labels };
};

test('a gauge that nobody knows yet is not there, rather than 0', async (t) => {
  const given = named();
  let value: number | null = null;
  readGauge(given, () => [{ value }]);
  t.notRegex(await given.registry.metrics(), /^x /m);
  value = 7;
  t.regex(await given.registry.metrics(), /^x 7$/m);
  value = null;
  t.notRegex(await given.registry.metrics(), /^x /m);
});

test('what is read is what there is now: a series that ended is gone', async (t) => {
  const given = named(['of']);
  let names = ['a', 'b'];
  readCounter(given, () => names.map((of) => ({ labels: { of }, value: 3 })));
  t.regex(await given.registry.metrics(), /x\{of="a"\} 3\nx\{of="b"\} 3\n/);
  names = ['b'];
  t.notRegex(await given.registry.metrics(), /of="a"/);
});

test('a label with no end of values becomes "other"', async (t) => {
  const given = named(['id']);
  const family = counterFamily(given);
  for (let id = 0; id < 5_000; id++) family.add(String(id));
  const lines = (await given.registry.metrics())
    .split('\n')
    .filter((line) => line.startsWith('x{'));
  t.is(lines.length, 1_001);
  t.true(lines.includes('x{id="other"} 4000'));
});

test('milliseconds are observed as seconds', async (t) => {
  const given = named(['of']);
  durationFamily(given).observe(250, 'a');
  t.regex(await given.registry.metrics(), /x_sum\{of="a"\} 0\.25\n/);
});

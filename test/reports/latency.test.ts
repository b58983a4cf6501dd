// Latency histograms: percentiles lie in the span of the exact value, and histograms add up.
import test from 'ava';
import fc from 'fast-check';
import {
  addHistograms,
  emptyHistogram,
  latencyBounds,
  percentile,
  spanOfLatency,
} from '../../lib/reports/latency.ts';

const histogramOf = (all: readonly number[]): number[] =>
  all.reduce(
    (counts, ms) => counts.with(spanOfLatency(ms), (counts[spanOfLatency(ms)] ?? 0) + 1),
    [...emptyHistogram],
  );

const latencies = fc.array(fc.integer({ min: 0, max: 290_000 }), { minLength: 1, maxLength: 200 });

test('a percentile lies in the span of the exact one', (t) => {
  fc.assert(
    fc.property(latencies, fc.constantFrom(0.5, 0.95, 0.99, 1), (all, share) => {
      const sorted = all.toSorted((one, other) => one - other);
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
      const span = spanOfLatency(exact);
      const found = percentile(histogramOf(all), share) ?? -1;
      return found >= (latencyBounds[span - 1] ?? 0) && found <= (latencyBounds[span] ?? 0);
    }),
  );
  t.pass();
});

test('histograms of parts add up to that of the whole', (t) => {
  fc.assert(
    fc.property(latencies, latencies, (one, other) => {
      t.deepEqual(
        addHistograms(histogramOf(one), histogramOf(other)),
        histogramOf([...one, ...other]),
      );
    }),
  );
});

test('nothing has no percentile, and what takes too long has the last bound', (t) => {
  t.is(percentile(emptyHistogram, 0.5), null);
  t.is(percentile(histogramOf([400_000]), 0.5), 300_000);
  t.is(percentile(histogramOf([100]), 1), 250);
});

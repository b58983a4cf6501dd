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

const sumOf = (all: readonly number[]): number => all.reduce((sum, ms) => sum + ms, 0);

const latencies = fc.array(fc.integer({ min: 0, max: 290_000 }), { minLength: 1, maxLength: 200 });

test('a percentile lies in the span of the exact one', (t) => {
  fc.assert(
    fc.property(latencies, fc.constantFrom(0.5, 0.95, 0.99, 1), (all, share) => {
      const sorted = all.toSorted((one, other) => one - other);
      const exact = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
      const span = spanOfLatency(exact);
      const found = percentile(histogramOf(all), share, sumOf(all)) ?? -1;
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
  t.is(percentile(emptyHistogram, 0.5, 0), null);
  t.is(percentile(histogramOf([400_000]), 0.5, 400_000), 300_000);
});

test('percentiles and mean are of the same times: equal latencies at an end of a span are told exactly', (t) => {
  for (const ms of [0, 250, 500, 1_000, 300_000]) {
    const all = Array.from({ length: 9 }, () => ms);
    for (const share of [0.5, 0.95, 0.99]) {
      t.is(percentile(histogramOf(all), share, sumOf(all)), ms, `${ms}`);
    }
  }
});

test('the percentiles of one message are its latency, as is the mean', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 300_000 }), (ms) => {
      for (const share of [0.5, 0.95, 0.99]) {
        t.is(percentile(histogramOf([ms]), share, ms), ms);
      }
    }),
    { examples: [[0], [100], [125], [250]] },
  );
});

test('the percentiles of all shares have the exact mean', (t) => {
  const shares = Array.from({ length: 1_000 }, (_, index) => (index + 0.5) / 1_000);
  fc.assert(
    fc.property(latencies, (all) => {
      const mean = sumOf(all) / all.length;
      const found = shares.map((share) => percentile(histogramOf(all), share, sumOf(all)) ?? -1);
      // A thousand steps are not all there is: a hundredth of the widest span is allowed.
      t.true(Math.abs(sumOf(found) / shares.length - mean) <= 1_800);
    }),
    { numRuns: 50 },
  );
});

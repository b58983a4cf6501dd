// Latencies as histograms: counts in fixed spans, which add up over hours and days, and percentiles read off them.

/**
 * Upper ends of the spans in ms, each inclusive; what takes longer than the last is counted behind it. A code lives
 * five minutes, so little does. Rows in MySQL are counted by these: changing them means counting everything again.
 */
export const latencyBounds: readonly number[] = [
  ...[250, 500, 1_000, 1_500, 2_000, 3_000, 5_000, 8_000, 13_000],
  ...[20_000, 30_000, 60_000, 120_000, 300_000],
];

/** One count per span, and one for what took longer. */
export type Histogram = readonly number[];

export const emptyHistogram: Histogram = Array.from({ length: latencyBounds.length + 1 }, () => 0);

/** The span a latency is counted in. */
export const spanOfLatency = (ms: number): number => {
  const index = latencyBounds.findIndex((bound) => ms <= bound);
  return index === -1 ? latencyBounds.length : index;
};

export const addHistograms = (one: Histogram, other: Histogram): Histogram =>
  one.map((count, index) => count + (other[index] ?? 0));

export const sizeOf = (histogram: Histogram): number =>
  histogram.reduce((sum, count) => sum + count, 0);

/**
 * The latency (ms) that a share from 0 to 1 of all stayed within, or null when there are none: exact to the span it
 * falls into, evenly spread inside it. Beyond the last bound it is that bound.
 */
export const percentile = (histogram: Histogram, share: number): number | null => {
  const wanted = share * sizeOf(histogram);
  if (wanted === 0) return null;
  let before = 0;
  for (const [index, count] of histogram.entries()) {
    if (before + count >= wanted && count > 0) {
      const from = latencyBounds[index - 1] ?? 0;
      const to = latencyBounds[index] ?? from;
      return Math.round(from + ((to - from) * (wanted - before)) / count);
    }
    before += count;
  }
  return null;
};

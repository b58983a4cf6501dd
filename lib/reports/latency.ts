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

const spanAt = (index: number): { from: number; to: number } => {
  const from = latencyBounds[index - 1] ?? 0;
  return { from, to: latencyBounds[index] ?? from };
};

/** Where in their spans the latencies lie on average, from 0 (lower ends) to 1, by the exact sum of all. */
const depthOf = (histogram: Histogram, sumMs: number): number => {
  const ends = histogram.map((count, index) => ({ count, ...spanAt(index) }));
  const lowest = ends.reduce((sum, { count, from }) => sum + count * from, 0);
  const highest = ends.reduce((sum, { count, to }) => sum + count * to, 0);
  if (highest === lowest) return 0;
  return Math.min(Math.max((sumMs - lowest) / (highest - lowest), 0), 1);
};

const lastBound = latencyBounds.at(-1) ?? 0;

/**
 * The latency (ms) that a share from 0 to 1 of all stayed within, or null when there are none: that of a single one
 * exactly; of several exact to the span it falls into, and read off the distribution inside the spans that has the exact
 * mean (`sumMs` is the sum of all, ms), so that percentiles fit the mean. Beyond the last bound it is that bound.
 */
export const percentile = (histogram: Histogram, share: number, sumMs: number): number | null => {
  const size = sizeOf(histogram);
  const wanted = share * size;
  if (wanted === 0) return null;
  if (size === 1) return Math.min(sumMs, lastBound);
  const depth = depthOf(histogram, sumMs);
  let before = 0;
  for (const [index, count] of histogram.entries()) {
    if (before + count >= wanted && count > 0) {
      const { from, to } = spanAt(index);
      // Positions p in (0, 1], spread evenly, have the mean 1 / (1 + e) when raised to e.
      const inside = depth === 0 ? 0 : ((wanted - before) / count) ** (1 / depth - 1);
      return Math.round(from + (to - from) * inside);
    }
    before += count;
  }
  return null;
};

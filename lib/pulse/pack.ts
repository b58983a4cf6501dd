// Metrics as they lie in Redis: what prom-client repeats for every bucket of a histogram is said once.
import type { MetricJson } from './rules.ts';

type Label = string | number;
type Value = MetricJson['values'][number];

/** A row is the values of its labels and its figures: one, or the buckets of a histogram, their sum and their count. */
export type PackedMetric = Omit<MetricJson, 'values'> & {
  labels: string[];
  /** Upper bounds of the buckets; none where it is no histogram. */
  bounds: Label[];
  rows: [labels: Label[], figures: number[]][];
};

const boundLabel = 'le';

/** The runs of values that belong to one series of a histogram; each ends with its count. */
const seriesOf = ({ name, type, values }: MetricJson): Value[][] => {
  if (type !== 'histogram') return values.map((value) => [value]);
  const series: Value[][] = [];
  let run: Value[] = [];
  for (const value of values) {
    run.push(value);
    if (value.metricName !== `${name}_count`) continue;
    series.push(run);
    run = [];
  }
  return series;
};

export const packMetric = (metric: MetricJson): PackedMetric => {
  const { values, ...head } = metric;
  const series = seriesOf(metric);
  const [first = []] = series;
  const labels = Object.keys(first[0]?.labels ?? {}).filter((name) => name !== boundLabel);
  const bounds = first.flatMap(({ labels: { [boundLabel]: bound } }) => bound ?? []);
  const rows = series.map((run): PackedMetric['rows'][number] => [
    labels.map((name) => run[0]?.labels[name] ?? ''),
    run.map(({ value }) => value),
  ]);
  return { ...head, labels, bounds, rows };
};

export const unpackMetric = ({ labels, bounds, rows, ...head }: PackedMetric): MetricJson => {
  const { name, type } = head;
  const valuesOf = ([given, figures]: PackedMetric['rows'][number]): Value[] => {
    const own = Object.fromEntries(labels.map((label, at) => [label, given[at] ?? '']));
    if (type !== 'histogram') return [{ value: figures[0] ?? 0, labels: own }];
    return figures.map((value, at) => {
      const bound = bounds[at];
      if (bound !== undefined) {
        return { value, labels: { [boundLabel]: bound, ...own }, metricName: `${name}_bucket` };
      }
      return {
        value,
        labels: own,
        metricName: `${name}_${at === bounds.length ? 'sum' : 'count'}`,
      };
    });
  };
  return { ...head, values: rows.flatMap(valuesOf) };
};

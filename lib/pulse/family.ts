// Families of metrics whose series are found by their labels' values, and never grow without a bound.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** More distinct series than any family of ours has; what comes after is counted as "other". */
const seriesMost = 1_000;

/** Finds the child for the values of the labels; a known one costs a look into a Map. */
const childrenOf = <C>(labels: readonly string[], make: (...values: string[]) => C) => {
  const known = new Map<string, C>();
  return (...values: string[]): C => {
    const key = values.length === 1 ? String(values[0]) : values.join('\n');
    const found = known.get(key);
    if (found !== undefined) return found;
    if (known.size >= seriesMost) return make(...labels.map(() => 'other'));
    const made = make(...values);
    known.set(key, made);
    return made;
  };
};

type Named<L extends string> = {
  registry: Registry;
  name: string;
  help: string;
  labels: readonly L[];
};

/** A counter with these labels; `add` takes their values in order. */
export const counterFamily = ({ registry, name, help, labels }: Named<string>) => {
  const counter = new Counter({ name, help, labelNames: labels, registers: [registry] });
  const childOf = childrenOf(labels, (...values) => counter.labels(...values));
  return {
    add: (...values: string[]): void => childOf(...values).inc(),
    /** Makes a series exist before anything is counted: a rate needs a first point. */
    start: (...values: string[]): void => childOf(...values).inc(0),
  };
};

/** Seconds, for what takes between a millisecond and half a minute. */
const secondsBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** A histogram of seconds with these labels; `observe` takes milliseconds, then the labels' values in order. */
export const durationFamily = ({ registry, name, help, labels }: Named<string>) => {
  const histogram = new Histogram({
    ...{ name, help, labelNames: labels, buckets: secondsBuckets, registers: [registry] },
  });
  const childOf = childrenOf(labels, (...values) => histogram.labels(...values));
  return {
    observe: (ms: number, ...values: string[]): void => childOf(...values).observe(ms / 1000),
  };
};

export type Sample = { labels?: Record<string, string>; value: number | null };

/** A gauge that is read when it is asked for, and costs nothing in between; null is left out. */
export const readGauge = (
  { registry, name, help, labels }: Named<string>,
  read: () => readonly Sample[],
): void => {
  new Gauge({
    ...{ name, help, labelNames: labels, registers: [registry] },
    collect() {
      this.reset();
      // Without labels a reset leaves a 0, which nobody has said.
      if (labels.length === 0) this.remove();
      for (const { labels: values = {}, value } of read()) {
        if (value !== null) this.set(values, value);
      }
    },
  });
};

/** A counter that somebody else keeps, read when it is asked for. */
export const readCounter = (
  { registry, name, help, labels }: Named<string>,
  read: () => readonly Sample[],
): void => {
  new Counter({
    ...{ name, help, labelNames: labels, registers: [registry] },
    collect() {
      this.reset();
      for (const { labels: values = {}, value } of read()) {
        if (value !== null) this.inc(values, value);
      }
    },
  });
};

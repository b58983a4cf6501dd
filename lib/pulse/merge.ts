// The metrics of all processes as one page for Prometheus.
import { AggregatorRegistry } from 'prom-client';
import type { MetricJson, SeenPulse } from './rules.ts';

export const contentType = AggregatorRegistry.PROMETHEUS_CONTENT_TYPE;

/**
 * Every series says its process, counters too: a sum over processes falls when one of them ends, and Prometheus would
 * take that for a reset and count the rest once more. `sum by` in a query loses nothing.
 */
const labelled = ({ id, metrics }: Pick<SeenPulse, 'id' | 'metrics'>): MetricJson[] =>
  metrics.map((metric) => ({
    ...metric,
    values: metric.values.map((value) => ({ ...value, labels: { ...value.labels, process: id } })),
  }));

/** Which processes there are, as metrics of the page itself. */
const roll = (pulses: readonly SeenPulse[]): MetricJson[] => {
  const gauge = (name: string, help: string, figure: (pulse: SeenPulse) => number) => ({
    ...{ name, help, type: 'gauge', aggregator: 'sum' },
    values: pulses.map((pulse) => ({ value: figure(pulse), labels: { process: pulse.id } })),
  });
  return [
    gauge('tessera_process_up', '1 while a process reports, 0 when it fell silent.', ({ state }) =>
      state === 'alive' ? 1 : 0,
    ),
    gauge(
      'tessera_process_start_time_seconds',
      'When a process started, Unix time.',
      ({ startedAt }) => startedAt / 1000,
    ),
  ];
};

/**
 * The text of /metrics: what the living last reported, and `own`, what the process that serves it knows itself (the
 * depth of queues). Lost processes are named, but their figures are not repeated.
 */
export const metricsText = (
  pulses: readonly SeenPulse[],
  own: readonly MetricJson[] = [],
): Promise<string> => {
  const living = pulses.filter(({ state }) => state === 'alive');
  // prom-client reads no more of its own JSON than these fields.
  const pages = [roll(pulses), [...own], ...living.map(labelled)] as unknown as object[];
  return AggregatorRegistry.aggregate(pages).metrics();
};

// The state of the queues as metrics: what the process that serves them has just read from the broker.
import type { MetricJson } from './rules.ts';

export type QueueState = {
  job: string;
  fresh: number;
  again: number;
  waiting: readonly { ready: number }[];
  dead: number;
  consumers: number;
  /** Null while nobody can say. */
  oldestAgeMs: number | null;
};

type Value = MetricJson['values'][number];

const gauge = (name: string, help: string, values: Value[]): MetricJson => ({
  ...{ name, help, type: 'gauge', aggregator: 'sum', values },
});

/** Depth by queue and part (fresh, again, waiting on the ladder, dead), age of the oldest job, consumers. */
export const queueMetrics = (queues: readonly QueueState[]): MetricJson[] => [
  gauge(
    'tessera_queue_depth',
    'Jobs by queue and part: fresh, again (after a retry), waiting (for one), dead.',
    queues.flatMap(({ job: queue, fresh, again, waiting, dead }) => {
      const onLadder = waiting.reduce((all, { ready }) => all + ready, 0);
      const parts = { fresh, again, waiting: onLadder, dead };
      return Object.entries(parts).map(([part, value]) => ({ value, labels: { queue, part } }));
    }),
  ),
  gauge(
    'tessera_queue_oldest_age_seconds',
    'Age of the oldest job that nobody has taken yet; 0 when none waits.',
    queues.flatMap(({ job: queue, oldestAgeMs }) =>
      oldestAgeMs === null ? [] : [{ value: oldestAgeMs / 1000, labels: { queue } }],
    ),
  ),
  gauge(
    'tessera_queue_consumers',
    'Processes that take jobs from a queue.',
    queues.map(({ job: queue, consumers }) => ({ value: consumers, labels: { queue } })),
  ),
];

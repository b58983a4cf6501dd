// The queues: how they are at this moment, and how they were in the last hour and day.
import { object, oneOf, withDefault } from '../../../lib/kernel/schema.ts';
import type { QueueFigures } from '../../../lib/ops/figures.ts';
import { rings } from '../../../lib/ops/ring-store.ts';
import { columnsOf } from '../../../lib/ops/rules.ts';
import { opsRoute } from '../route.ts';

const queueView = (queue: QueueFigures) => ({
  job: queue.job,
  ready: queue.fresh + queue.again,
  fresh: queue.fresh,
  again: queue.again,
  waiting: queue.waiting,
  dead: queue.dead,
  unacked: queue.unacked,
  consumers: queue.consumers,
  oldest_age_ms: queue.oldestAgeMs,
  /** What was kept does not reach back to when the oldest came. */
  oldest_age_is_least: queue.oldestAgeIsLeast,
  in_per_second: queue.inPerSecond,
  out_per_second: queue.outPerSecond,
});

export const queuesNow = opsRoute({
  ...{ method: 'GET', path: '/ops/api/queues' },
  summary: 'Every job: what waits, what is in hand, what is dead, and how fast it comes and goes.',
  handle: async (app) => {
    const { at, source, queues } = await app.figures.now();
    return { at: new Date(at).toISOString(), source, items: queues.map(queueView) };
  },
});

const history = opsRoute({
  ...{ method: 'GET', path: '/ops/api/queues/history' },
  summary: 'The figures of the last hour (each 5 s) or day (each minute), in columns for a plot.',
  query: object({ span: withDefault(oneOf('hour', 'day'), 'hour') }),
  handle: async (app, { query: { span } }) => {
    const { samples } = await app.ring.read(span);
    return { span, step_ms: rings[span].stepMs, ...columnsOf(samples, rings[span].stepMs) };
  },
});

export const queueRoutes = [queuesNow, history];

// Metrics on their way through Redis: smaller, and what comes out is what went in.
import test from 'ava';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { metricsText } from '../../lib/pulse/merge.ts';
import { packMetric, unpackMetric } from '../../lib/pulse/pack.ts';
import type { MetricJson } from '../../lib/pulse/rules.ts';

const aRegistry = (): Registry => {
  const registry = new Registry();
  const registers = [registry];
  const buckets = [0.1, 1, 10];
  const histogram = new Histogram({
    ...{ name: 'a_seconds', help: 'A.', labelNames: ['route', 'status'], buckets, registers },
  });
  histogram.labels('/a', '2xx').observe(0.5);
  histogram.labels('/a', '2xx').observe(50);
  histogram.labels('/b', '4xx').observe(0.05);
  new Histogram({ name: 'bare_seconds', help: 'B.', buckets, registers }).observe(2);
  new Histogram({ name: 'empty_seconds', help: 'E.', labelNames: ['x'], buckets, registers });
  new Counter({ name: 'c_total', help: 'C.', labelNames: ['x'], registers }).labels('y').inc(3);
  new Counter({ name: 'none_total', help: 'N.', labelNames: ['x'], registers });
  new Gauge({ name: 'g', help: 'G.', registers }).set(-1.5);
  return registry;
};

test('what was packed comes out as it was', async (t) => {
  const registry = aRegistry();
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricJson[];
  const through = JSON.parse(JSON.stringify(metrics.map(packMetric))).map(unpackMetric);
  t.is(await metricsText([], through), await metricsText([], metrics));
  const kept = metrics.map(({ name, values }) => ({
    name,
    values: values.map(({ value, labels }) => ({ value, labels })),
  }));
  t.like(through, kept);
});

test('a histogram takes a quarter of its room at most', async (t) => {
  const registry = new Registry();
  const histogram = new Histogram({
    ...{ name: 'tessera_http_request_duration_seconds', help: 'H.', registers: [registry] },
    labelNames: ['method', 'route', 'status'],
  });
  for (let route = 0; route < 75; route++)
    histogram.labels('POST', `/v1/route/${route}`, '2xx').observe(1);
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricJson[];
  const sizes = [metrics, metrics.map(packMetric)].map((each) => JSON.stringify(each).length);
  t.log(`${sizes[0]} bytes become ${sizes[1]}`);
  t.true((sizes[1] ?? 0) * 4 < (sizes[0] ?? 0));
});

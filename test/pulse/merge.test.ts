// The page for Prometheus: one series per process, and nothing of those who fell silent.
import test from 'ava';
import { Counter, Registry } from 'prom-client';
import { metricsText } from '../../lib/pulse/merge.ts';
import type { MetricJson, SeenPulse } from '../../lib/pulse/rules.ts';

const reporting = async (id: string, count: number, state: SeenPulse['state'] = 'alive') => {
  const registry = new Registry();
  const counter = new Counter({
    ...{ name: 'tessera_sends_total', help: 'Sends.', labelNames: ['channel'] },
    registers: [registry],
  });
  counter.labels('whatsapp').inc(count);
  const metrics = (await registry.getMetricsAsJSON()) as unknown as MetricJson[];
  return { id, state, startedAt: 5_000, metrics } as SeenPulse;
};

test('every series says its process, so that the end of one is no reset of another', async (t) => {
  const text = await metricsText([await reporting('a@h:1', 3), await reporting('b@h:2', 4)]);
  t.regex(text, /tessera_sends_total\{channel="whatsapp",process="a@h:1"\} 3\n/);
  t.regex(text, /tessera_sends_total\{channel="whatsapp",process="b@h:2"\} 4\n/);
  t.is(text.match(/# TYPE tessera_sends_total counter/g)?.length, 1);
  t.regex(text, /tessera_process_start_time_seconds\{process="a@h:1"\} 5\n/);
});

test('a lost process is named, its figures are not repeated', async (t) => {
  const text = await metricsText([await reporting('a@h:1', 3, 'lost')]);
  t.regex(text, /tessera_process_up\{process="a@h:1"\} 0\n/);
  t.notRegex(text, /tessera_sends_total/);
});

test('what the serving process knows itself stands beside', async (t) => {
  const own: MetricJson[] = [
    {
      ...{ name: 'tessera_queue_depth', help: 'Depth.', type: 'gauge', aggregator: 'sum' },
      values: [{ value: 12, labels: { queue: 'whatsapp.send' } }],
    },
  ];
  t.regex(await metricsText([], own), /tessera_queue_depth\{queue="whatsapp.send"\} 12\n/);
});

// Alerts, dashboard and compose profile: they parse, speak only of metrics that exist, and every alert has its runbook line.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import anyTest, { type TestFn } from 'ava';
import { metricsText } from '../../lib/pulse/merge.ts';
import { queueMetrics } from '../../lib/pulse/queues.ts';
import type { MetricJson } from '../../lib/pulse/rules.ts';
import { promtoolPath, promtoolSays, promtoolTests } from '../support/promtool.ts';
import { startStack } from '../support/stack.ts';

const test = anyTest as TestFn;
const withPromtool = promtoolPath() ? test : test.skip;

const docker = join(import.meta.dirname, '../../docker');
const read = (path: string): string => readFileSync(join(docker, path), 'utf8');

const alerts = read('observability/alerts.yml');
const alertNames = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
const alertQueries = [...alerts.matchAll(/expr: >-\n\s+(.+)/g)].map(([, query = '']) => query);

type Panel = { title: string; targets?: { expr: string }[]; gridPos: Record<string, number> };
const { panels } = JSON.parse(read('observability/grafana/dashboards/tessera.json')) as {
  panels: Panel[];
};
const panelQueries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** Names of all metrics there are: those of both kinds of processes, of the page itself and of the queues. */
const knownMetrics = async (): Promise<Set<string>> => {
  const stack = await startStack('observability', { workers: [] });
  try {
    // What is reported from its first time on.
    stack.worker.metrics.reconciled(0, 0);
    stack.worker.metrics.recounted(0);
    const all = await Promise.all(
      [stack.api, stack.worker].map(({ metrics }) => metrics.registry.getMetricsAsJSON()),
    );
    const page = await metricsText(
      [],
      [...(all.flat() as unknown as MetricJson[]), ...queueMetrics([])],
    );
    const named = [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
    return new Set(
      named.flatMap(([, name = '', type]) =>
        type === 'histogram' ? ['_bucket', '_count', '_sum'].map((part) => name + part) : [name],
      ),
    );
  } finally {
    await stack.close();
  }
};

test('alerts and dashboard speak only of metrics that there are', async (t) => {
  const known = await knownMetrics();
  for (const query of [...alertQueries, ...panelQueries]) {
    for (const [name] of query.matchAll(/tessera_\w+/g))
      t.true(known.has(name), `${name}: ${query}`);
  }
  t.is(alertQueries.length, alertNames.length);
  t.true(panelQueries.length > 30);
});

test('every alert has its section in the runbook, and every section its alert', (t) => {
  const sections = [...read('runbook.md').matchAll(/^### (\w+)\n(.+)$/gm)];
  t.deepEqual(sections.map(([, name]) => name).toSorted(), alertNames.toSorted());
  for (const name of alertNames) {
    t.true(alerts.includes(`runbook: docker/runbook.md#${name.toLowerCase()}\n`), name);
  }
});

test('the panels of the dashboard do not overlap', (t) => {
  const taken = new Set<string>();
  for (const { title, gridPos } of panels) {
    const { x = 0, y = 0, w = 0, h = 0 } = gridPos;
    t.true(x + w <= 24, title);
    for (let row = y; row < y + h; row++) {
      for (let column = x; column < x + w; column++) {
        t.false(taken.has(`${row}:${column}`), title);
        taken.add(`${row}:${column}`);
      }
    }
  }
});

test('compose has both behind the profile, and mounts what there is', (t) => {
  const compose = read('compose.yml');
  for (const name of ['prometheus', 'grafana']) {
    const service = new RegExp(`\\n  ${name}:\\n(    .*\\n)+`).exec(compose)?.[0] ?? '';
    t.regex(service, /profiles: \[observability\]/, name);
    t.regex(service, /127\.0\.0\.1:\d+:\d+/, name);
    for (const [, path = ''] of service.matchAll(/- \.\/(observability\S+?):/g)) {
      t.true(existsSync(join(docker, path)), path);
    }
  }
  // The file that the ops process writes is the one that Prometheus reads.
  t.regex(compose, /TESSERA_OPS_TOKEN_FILE: \/ops-token\/token/);
  t.regex(read('observability/prometheus.yml'), /credentials_file: \/ops-token\/token/);
});

withPromtool('promtool check rules and check config find nothing to say', (t) => {
  t.is(promtoolSays(['rules', join(docker, 'observability/alerts.yml')]), '');
  t.is(promtoolSays(['config', '--syntax-only', join(docker, 'observability/prometheus.yml')]), '');
});

/** Hands `content` to `look` as a file; promtool reads JSON as the YAML it is. */
const asFile = <T>(content: unknown, look: (file: string) => T): T => {
  const folder = mkdtempSync(join(tmpdir(), 'tessera-'));
  try {
    const file = join(folder, 'promtool.json');
    writeFileSync(file, JSON.stringify(content));
    return look(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

withPromtool('every query of the dashboard is one', (t) => {
  const rules = panelQueries.map((expr, at) => ({
    ...{ record: `panel:${at}`, expr: expr.replaceAll('$__rate_interval', '1m') },
  }));
  const said = asFile({ groups: [{ name: 'dashboard', rules }] }, (file) =>
    promtoolSays(['rules', file]),
  );
  t.is(said, '');
});

/** Series over ten minutes, and which alert they set off after them; none where `fires` is left out. */
const stories: { series: Record<string, string>; alert: string; fires?: true }[] = [
  {
    alert: 'TesseraProcessLost',
    series: { 'tessera_process_up{process="api@a:1"}': '1x5 0x5' },
    fires: true,
  },
  { alert: 'TesseraProcessLost', series: { 'tessera_process_up{process="api@a:1"}': '1x10' } },
  { alert: 'TesseraMetricsMissing', series: {}, fires: true },
  {
    alert: 'TesseraErrors',
    series: {
      'tessera_http_request_duration_seconds_count{status="5xx"}': '0+2x10',
      'tessera_http_request_duration_seconds_count{status="2xx"}': '0+98x10',
    },
    fires: true,
  },
  {
    alert: 'TesseraErrors',
    series: {
      'tessera_http_request_duration_seconds_count{status="5xx"}': '0+1x10',
      'tessera_http_request_duration_seconds_count{status="2xx"}': '0+199x10',
    },
  },
  {
    alert: 'TesseraSendQueueLate',
    series: { 'tessera_queue_oldest_age_seconds{queue="whatsapp.send"}': '0x5 6 7 8 9 10' },
    fires: true,
  },
  {
    alert: 'TesseraDeadLetters',
    series: { 'tessera_dead_total{queue="billing.charge",process="a"}': '0x8 1x2' },
    fires: true,
  },
  // One of two processes ends: its series ends, and nothing seems to have happened.
  {
    alert: 'TesseraDeadLetters',
    series: {
      'tessera_dead_total{queue="billing.charge",process="a"}': '5x10',
      'tessera_dead_total{queue="billing.charge",process="b"}': '7x5 _x5',
    },
  },
  {
    alert: 'TesseraBooksDoNotAgree',
    series: { tessera_reconcile_mismatches: '0x9 1' },
    fires: true,
  },
  {
    alert: 'TesseraClockOffset',
    series: { 'tessera_clock_offset_seconds{engine="redis"}': '-3x10' },
    fires: true,
  },
];

withPromtool('alerts fire when they should, and not when they should not', (t) => {
  const tests = stories.map(({ series, alert, fires }) => ({
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    // Only which alerts fire: their texts may change.
    promql_expr_test: [
      {
        expr: `count by (alertname) (ALERTS{alertname="${alert}",alertstate="firing"})`,
        eval_time: '10m',
        exp_samples: fires ? [{ labels: `{alertname="${alert}"}`, value: 1 }] : [],
      },
    ],
  }));
  const rule_files = [join(docker, 'observability/alerts.yml')];
  const said = asFile({ rule_files, evaluation_interval: '1m', tests }, promtoolTests);
  t.is(said, '');
});

// Alerts, dashboard and compose profile: they parse, speak only of metrics that exist, and every alert has its runbook line.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import anyTest, { type TestFn } from 'ava';
import { metricsText } from '../../lib/pulse/merge.ts';
import { queueMetrics } from '../../lib/pulse/queues.ts';
import type { MetricJson } from '../../lib/pulse/rules.ts';
import { asFile, promtoolPath, promtoolSays } from '../support/promtool.ts';
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

withPromtool('every query of the dashboard is one', (t) => {
  const rules = panelQueries.map((expr, at) => ({
    ...{ record: `panel:${at}`, expr: expr.replaceAll('$__rate_interval', '1m') },
  }));
  const said = asFile({ groups: [{ name: 'dashboard', rules }] }, (file) =>
    promtoolSays(['rules', file]),
  );
  t.is(said, '');
});

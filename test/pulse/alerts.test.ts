// The alerts, each in stories told minute by minute: they fire when they should, and not when they should not.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import anyTest, { type TestFn } from 'ava';
import { asFile, promtoolPath, promtoolTests } from '../support/promtool.ts';

const test = anyTest as TestFn;
const withPromtool = promtoolPath() ? test : test.skip;

const file = join(import.meta.dirname, '../../docker/observability/alerts.yml');
const alertNames = [...readFileSync(file, 'utf8').matchAll(/- alert: (\w+)/g)].map(
  ([, name = '']) => name,
);

type Story = {
  alert: string;
  series: Record<string, string>;
  /** Minutes after which it is looked; 10 when left out. */
  after?: number;
  quiet?: true;
};

/** A counter with two series: so many a minute of one kind, so many of the other. */
const shares = (name: string, bad: [string, number], good: [string, number]) => ({
  [`${name}{${bad[0]}}`]: `0+${bad[1]}x100`,
  [`${name}{${good[0]}}`]: `0+${good[1]}x100`,
});

const requests = 'tessera_http_request_duration_seconds_count';
const provider = 'tessera_provider_duration_seconds_count';
const sends = 'tessera_sends_total';
const books = 'tessera_reconcile_timestamp_seconds{process="billing@a:1"}';

/** Series minute by minute, and the alert that they set off; `quiet`: that they do not. */
const stories: Story[] = [
  { alert: 'TesseraMetricsMissing', series: {} },
  {
    alert: 'TesseraProcessLost',
    series: { 'tessera_process_up{process="api@a:1"}': '1x5 0x5' },
  },
  {
    ...{ alert: 'TesseraProcessLost', quiet: true },
    series: { 'tessera_process_up{process="api@a:1"}': '1x10' },
  },
  {
    alert: 'TesseraQueueWithoutConsumer',
    series: { 'tessera_queue_consumers{queue="whatsapp.send"}': '1x5 0x5' },
  },
  {
    alert: 'TesseraEventLoopLate',
    series: { 'tessera_event_loop_delay_p99_seconds{process="a"}': '0.4x10' },
  },
  {
    ...{ alert: 'TesseraMemoryHigh', after: 15 },
    series: { 'tessera_resident_memory_bytes{process="a"}': '500000000x15' },
  },
  {
    alert: 'TesseraClockOffset',
    series: { 'tessera_clock_offset_seconds{engine="redis"}': '-3x10' },
  },
  ...['redis', 'rabbitmq', 'mysql'].map((engine) => ({
    alert: 'TesseraEngineAway',
    series: { [`tessera_engine_connected{engine="${engine}",process="a"}`]: '1x8 0x2' },
  })),
  {
    alert: 'TesseraMysqlFailing',
    series: { 'tessera_outages_total{engine="mysql",process="a"}': '0x5 1 2 3 4 5' },
  },
  {
    alert: 'TesseraMysqlPoolFull',
    series: { 'tessera_mysql_pool_connections{state="waiting",process="a"}': '0x5 3x5' },
  },
  ...['nacked', 'refused', 'unknown'].map((outcome) => ({
    alert: 'TesseraPublishRefused',
    series: { [`tessera_broker_publishes_total{outcome="${outcome}",process="a"}`]: '0x7 4x3' },
  })),
  {
    ...{ alert: 'TesseraPublishRefused', quiet: true },
    series: { 'tessera_broker_publishes_total{outcome="published",process="a"}': '0+90x10' },
  },
  {
    alert: 'TesseraRedisFailOpen',
    series: { 'tessera_redis_failopen_total{limit="login_ip",process="a"}': '0x7 4x3' },
  },
  { alert: 'TesseraErrors', series: shares(requests, ['status="5xx"', 2], ['status="2xx"', 98]) },
  {
    ...{ alert: 'TesseraErrors', quiet: true },
    series: shares(requests, ['status="5xx"', 1], ['status="2xx"', 199]),
  },
  {
    ...{ alert: 'TesseraSendSlow', after: 30 },
    series: Object.fromEntries(
      [
        ['5', '0+50x30'],
        ['10', '0+100x30'],
        ['+Inf', '0+100x30'],
      ].map(([le, values]) => [
        `tessera_http_request_duration_seconds_bucket{route="/v1/otp/send",le="${le}"}`,
        values ?? '',
      ]),
    ),
  },
  {
    ...{ alert: 'TesseraSendsFail', after: 20 },
    series: shares(
      sends,
      ['mode="live",outcome="failed",channel="none"', 10],
      ['mode="live",outcome="accepted",channel="whatsapp"', 10],
    ),
  },
  {
    ...{ alert: 'TesseraSendsFail', after: 20, quiet: true },
    series: shares(
      sends,
      ['mode="test",outcome="failed",channel="none"', 10],
      ['mode="live",outcome="accepted",channel="whatsapp"', 10],
    ),
  },
  ...['broken', 'template'].map((outcome) => ({
    alert: 'TesseraProviderBroken',
    series: { [`${provider}{provider="whatsapp",outcome="${outcome}"}`]: '0+2x10' },
  })),
  ...['unknown', 'retry'].map((outcome) => ({
    ...{ alert: 'TesseraProviderSilent', after: 20 },
    series: shares(
      provider,
      [`provider="whatsapp",outcome="${outcome}"`, 10],
      ['provider="whatsapp",outcome="accepted"', 90],
    ),
  })),
  {
    ...{ alert: 'TesseraProviderThrottles', after: 20 },
    series: { [`${provider}{provider="whatsapp",outcome="throttle"}`]: '0+3x20' },
  },
  {
    alert: 'TesseraSendQueueLate',
    series: { 'tessera_queue_oldest_age_seconds{queue="whatsapp.send"}': '0x5 6 7 8 9 10' },
  },
  {
    ...{ alert: 'TesseraSendQueueLate', quiet: true },
    series: { 'tessera_queue_oldest_age_seconds{queue="webhook.dispatch"}': '0x5 60x5' },
  },
  {
    alert: 'TesseraQueueLate',
    series: { 'tessera_queue_oldest_age_seconds{queue="webhook.dispatch"}': '0x2 130x8' },
  },
  {
    alert: 'TesseraDeadLetters',
    series: { 'tessera_dead_total{queue="billing.charge",process="a"}': '0x8 1x2' },
  },
  // Buried by the broker itself, or by a process that died before it was asked: no counter knows of it.
  {
    alert: 'TesseraDeadLetters',
    series: { 'tessera_queue_depth{queue="billing.charge",part="dead"}': '0x8 1x2' },
  },
  // One of two processes ends: its series ends, and nothing seems to have happened.
  {
    ...{ alert: 'TesseraDeadLetters', quiet: true },
    series: {
      'tessera_dead_total{queue="billing.charge",process="a"}': '5x10',
      'tessera_dead_total{queue="billing.charge",process="b"}': '7x5 _x5',
      'tessera_queue_depth{queue="billing.charge",part="fresh"}': '9x10',
      'tessera_queue_depth{queue="billing.charge",part="dead"}': '0x10',
    },
  },
  {
    ...{ alert: 'TesseraRetriesHigh', after: 30 },
    series: {
      'tessera_retries_total{queue="telegram.send",process="a"}': '0+30x30',
      'tessera_jobs_total{queue="telegram.send",process="a"}': '0+70x30',
    },
  },
  {
    ...{ alert: 'TesseraWebhooksFail', after: 90 },
    series: shares(
      'tessera_webhook_attempt_duration_seconds_count',
      ['result="timeout"', 60],
      ['result="2xx"', 40],
    ),
  },
  { alert: 'TesseraBooksDoNotAgree', series: { tessera_reconcile_mismatches: '0x9 1' } },
  // The worker lives and proves nothing any more.
  {
    ...{ alert: 'TesseraBooksNotProven', after: 240 },
    series: { [books]: '0x240', 'tessera_process_up{process="api@a:1"}': '1x240' },
  },
  // The worker died: its series ended an hour after the start.
  {
    ...{ alert: 'TesseraBooksNotProven', after: 260 },
    series: { [books]: '0x60 _x200', 'tessera_process_up{process="api@a:1"}': '1x260' },
  },
  // It has never proven anything.
  {
    ...{ alert: 'TesseraBooksNotProven', after: 240 },
    series: { 'tessera_process_up{process="api@a:1"}': '1x240' },
  },
  {
    ...{ alert: 'TesseraBooksNotProven', after: 60, quiet: true },
    series: { 'tessera_process_up{process="api@a:1"}': '1x60' },
  },
  {
    ...{ alert: 'TesseraBooksNotProven', after: 240, quiet: true },
    series: { [books]: '0+60x240', 'tessera_process_up{process="api@a:1"}': '1x240' },
  },
  { alert: 'TesseraRollupsDrift', series: { tessera_rollup_drift: '0x9 1' } },
  {
    alert: 'TesseraPrefixHeld',
    series: { 'tessera_pumping_decisions_total{decision="held",process="a"}': '0x5 1x5' },
  },
  {
    ...{ alert: 'TesseraLimitStorm', after: 15 },
    series: { 'tessera_admission_rejected_total{dimension="account"}': '0+4000x15' },
  },
  {
    alert: 'TesseraPasswordQueue',
    series: { 'tessera_argon2_queue{process="a"}': '0x5 40x5' },
  },
  {
    alert: 'TesseraIntakeFull',
    series: { 'tessera_intake_refused_total{limit="connections",process="a"}': '0+600x10' },
  },
];

test('every alert has a story in which it fires', (t) => {
  const told = new Set(stories.filter(({ quiet }) => !quiet).map(({ alert }) => alert));
  t.deepEqual([...told].toSorted(), alertNames.toSorted());
});

withPromtool('alerts fire when they should, and not when they should not', (t) => {
  const tests = stories.map(({ series, alert, after = 10, quiet }) => ({
    name: `${alert}${quiet ? ', quiet' : ''}: ${Object.keys(series)}`,
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    // Only which alerts fire: their texts may change.
    promql_expr_test: [
      {
        expr: `count by (alertname) (ALERTS{alertname="${alert}",alertstate="firing"})`,
        eval_time: `${after}m`,
        exp_samples: quiet ? [] : [{ labels: `{alertname="${alert}"}`, value: 1 }],
      },
    ],
  }));
  const rule_files = [file];
  const said = asFile({ rule_files, evaluation_interval: '1m', tests }, promtoolTests);
  t.is(said, '');
});

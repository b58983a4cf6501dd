// The settings of logs and traces: how much is said of what goes well, and where traces go.
import { integer, text } from './schema.ts';
import { milliseconds, setting } from './setting.ts';

export const observingSettings = {
  logSuccessPercent: setting(
    'LOG_SUCCESS_PERCENT',
    integer().min(0).max(100).default(100),
    'Of 100 requests that succeed, and of their jobs, how many get their line in the log. Failures and slow ones always do.',
  ),
  logSlowMs: setting(
    'LOG_SLOW_MS',
    milliseconds(1, 600_000, 3_000),
    'From when on a request or job is slow.',
  ),
  otlpEndpoint: setting(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    text()
      .uri({ scheme: ['http', 'https'] })
      .allow('')
      .default(''),
    'Where traces go: the base address of an OpenTelemetry collector that takes OTLP over HTTP (http://collector:4318). Empty: nothing is traced.',
  ),
  tracePercent: setting(
    'TRACE_PERCENT',
    integer().min(0).max(100).default(100),
    'Of 100 requests how many are traced, unless their caller’s traceparent says it.',
  ),
  heartbeatFile: setting(
    'HEARTBEAT_FILE',
    text().allow('').default(''),
    'File that a process touches every two seconds as long as it works, for probes: it holds “ready” while Redis and RabbitMQ are connected, else “waiting”. Empty: none.',
  ),
};

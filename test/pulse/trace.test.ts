// Traces: one send is one connected trace from the request through the queue to the provider, and says no secret.
import test from 'ava';
import { noTracing, traceIdOf } from '../../lib/kernel/tracing.ts';
import { openTracing } from '../../lib/pulse/trace.ts';
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.ts';
import { eventually, type Stack, startStack } from '../support/stack.ts';

let stack: Stack;
let collector: Collector;

test.before(async () => {
  collector = await startCollector();
  stack = await startStack('trace', {
    settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, SEND_DEADLINE_MS: '4000' },
  });
});

test.after.always(async () => {
  await stack?.close();
  await collector?.close();
});

const traceparent = (traceId: string, flags = '01') => ({
  traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}`,
});

const inTrace = (traceId: string): CollectedSpan[] =>
  collector.spans.filter((span) => span.traceId === traceId);

/** The spans of a trace once all the named ones have come. */
const spansOf = (t: Parameters<typeof eventually>[0], traceId: string, ...names: string[]) =>
  eventually(t, () => {
    const spans = inTrace(traceId);
    const found = names.map((name) => spans.find((span) => span.name === name));
    return found.every((span) => span !== undefined) ? found : undefined;
  });

test('one send is one connected trace, from the caller to the provider', async (t) => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const { live } = await stack.customer();
  const phone = stack.phone();
  const sent = await live.send(phone.number, traceparent(traceId));
  t.is(sent.status, 200);
  const [request, publish, consume, call] = await spansOf(
    t,
    traceId,
    'POST /v1/otp/send',
    'publish whatsapp.send',
    'process whatsapp.send',
    'whatsapp send',
  );
  t.is(request?.parentSpanId, '00f067aa0ba902b7');
  t.is(publish?.parentSpanId, request?.spanId);
  t.is(consume?.parentSpanId, publish?.spanId);
  t.is(call?.parentSpanId, consume?.spanId);
  t.deepEqual([request?.service, call?.service], ['tessera-api', 'tessera-workers']);
  t.is(request?.attributes['tessera.request_id'], sent.headers.get('x-request-id'));
  t.is(call?.attributes['tessera.outcome'], 'accepted');
  const code = await phone.code();
  for (const body of collector.bodies) {
    t.false(body.includes(phone.number.slice(1)));
    t.false(body.includes(`"${code}"`));
    t.notRegex(body, /sk_live|sk_test/);
  }
});

test('a retry stays in the trace', async (t) => {
  const traceId = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa';
  const { live } = await stack.customer();
  const phone = stack.phone();
  await phone.behave({ whatsapp: 'rate_limited' });
  await live.send(phone.number, traceparent(traceId));
  await eventually(t, () => {
    const tries = inTrace(traceId).filter(({ name }) => name === 'process whatsapp.send');
    return tries.length >= 2 ? tries : undefined;
  });
  t.is(new Set(inTrace(traceId).map(({ traceId: id }) => id)).size, 1);
});

test('a caller that does not sample is not traced; one without a trace gets a new one', async (t) => {
  const unsampled = 'cccccccccccccccccccccccccccccccc';
  await stack.anybody.get('/health', traceparent(unsampled, '00'));
  await stack.anybody.get('/health', { traceparent: 'nonsense' });
  await eventually(t, () =>
    collector.spans.some(({ name, parentSpanId }) => name === 'GET /health' && !parentSpanId)
      ? true
      : undefined,
  );
  t.deepEqual(inTrace(unsampled), []);
});

test('without an endpoint nothing is traced', async (t) => {
  t.is(await openTracing({ otlpEndpoint: '', tracePercent: 100 }, 'api'), noTracing);
  const start = { kind: 'client', name: 'x', attributes: {} } as const;
  t.is(await noTracing.span(start, async () => 7), 7);
  t.is(noTracing.traceparent(), undefined);
});

test('a collector that is away costs the spans and nothing else', async (t) => {
  const tracing = await openTracing({ otlpEndpoint: 'http://127.0.0.1:9', tracePercent: 100 }, 'x');
  const start = { kind: 'client', name: 'x', attributes: {} } as const;
  t.is(await tracing.span(start, async () => 7), 7);
  await t.throwsAsync(
    tracing.span(start, () => Promise.reject(new Error('of the work'))),
    { message: 'of the work' },
  );
  const startedAt = Date.now();
  await tracing.close();
  t.true(Date.now() - startedAt < 4_000);
});

test('the id of a trace is read off a traceparent, and off nothing else', (t) => {
  t.is(traceIdOf(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`), 'a'.repeat(32));
  for (const text of ['', undefined, 'x', `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`]) {
    t.is(traceIdOf(text), undefined);
  }
});

// Tracing by OpenTelemetry; loaded only when an endpoint is configured. Nothing global is registered.
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import { type Span, type SpanStart, type Tracing, traceIdOf } from '../kernel/tracing.ts';

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

const closeWithinMs = 2_000;

const flagsHex = (flags: number): string => flags.toString(16).padStart(2, '0');

const traceparentOf = (span: OtelSpan): string => {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${flagsHex(traceFlags)}`;
};

/** The context of a span in another process; anything that is no traceparent starts a new trace. */
const remote = (traceparent: string) => {
  const traceId = traceIdOf(traceparent);
  if (traceId === undefined) return ROOT_CONTEXT;
  const [, , spanId = '', flags = ''] = traceparent.split('-');
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
};

const handleOf = (span: OtelSpan): Span => ({
  rename: (name) => void span.updateName(name),
  set: (attributes) => void span.setAttributes(attributes),
  fail: (reason) => void span.setStatus({ code: SpanStatusCode.ERROR, message: reason }),
});

export type OtelOptions = {
  /** Base address of an OTLP/HTTP collector. */
  endpoint: string;
  /** Share of the traces that begin here, 0 to 1. */
  share: number;
  processName: string;
  version: string;
};

const openProvider = ({ endpoint, share, processName, version }: OtelOptions) =>
  new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.namespace': 'tessera',
      'service.name': `tessera-${processName}`,
      'service.version': version,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [
      new BatchSpanProcessor(
        new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` }),
        { scheduledDelayMillis: 1_000 },
      ),
    ],
  });

/** Traces to a collector; one that is away costs the spans and nothing else. */
export const createOtelTracing = (options: OtelOptions): Tracing => {
  const provider = openProvider(options);
  const tracer = provider.getTracer('tessera', options.version);
  const running = new AsyncLocalStorage<OtelSpan>();

  const contextOf = ({ parent }: SpanStart) => {
    if (parent !== undefined) return remote(parent);
    const here = running.getStore();
    return here ? trace.setSpan(ROOT_CONTEXT, here) : ROOT_CONTEXT;
  };

  return {
    on: true,
    traceparent: () => {
      const span = running.getStore();
      return span && traceparentOf(span);
    },
    span: async (start, work) => {
      const { kind, name, attributes } = start;
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, contextOf(start));
      try {
        return await running.run(span, () => work(handleOf(span)));
      } catch (error) {
        // Its name and nothing it says: texts may quote what was sent.
        const message = error instanceof Error ? error.name : 'error';
        span.setStatus({ code: SpanStatusCode.ERROR, message });
        throw error;
      } finally {
        span.end();
      }
    },
    close: async () => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeWithinMs);
      });
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
};

// An OpenTelemetry collector for tests: takes OTLP over HTTP as JSON and keeps the spans.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type CollectedSpan = {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  service: unknown;
  attributes: Record<string, unknown>;
};

export type Collector = {
  url: string;
  spans: CollectedSpan[];
  /** Everything that was sent, as it came. */
  bodies: string[];
  close(): Promise<void>;
};

type Attribute = { key: string; value: Record<string, unknown> };
type Span = Omit<CollectedSpan, 'service' | 'attributes'> & { attributes: Attribute[] };
type Exported = {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: Span[] }[];
  }[];
};

const read = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const spansOf = ({ resourceSpans }: Exported): CollectedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const { 'service.name': service } = read(resource.attributes);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId || undefined,
        name: span.name,
        service,
        attributes: read(span.attributes),
      })),
    );
  });

/** Listens on a free port. */
export const startCollector = async (): Promise<Collector> => {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    bodies.push(body);
    if (request.url === '/v1/traces') spans.push(...spansOf(JSON.parse(body) as Exported));
    response.setHeader('content-type', 'application/json').end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ spans, bodies },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

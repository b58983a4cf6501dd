// What the house knows of tracing: spans around work, and the word that carries a trace from process to process.

export type Attributes = Record<string, string | number | boolean>;

export type Span = {
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** Marks what the span is about as failed; `reason` is a code, never text that may quote somebody. */
  fail(reason: string): void;
};

export type SpanStart = {
  kind: 'server' | 'client' | 'producer' | 'consumer';
  name: string;
  attributes: Attributes;
  /** W3C traceparent of a span in another process; without one the span that runs here is the parent. */
  parent?: string | undefined;
};

export type Tracing = {
  /** False: nothing is traced, and nobody should prepare what a span would say. */
  readonly on: boolean;
  /** W3C traceparent of the span that runs here; undefined outside of any. */
  traceparent(): string | undefined;
  /** Runs `work` in a span, which ends with it. */
  span<T>(start: SpanStart, work: (span: Span) => Promise<T>): Promise<T>;
  /** Sends what is left; never throws, and takes two seconds at most. */
  close(): Promise<void>;
};

const nothing = (): void => undefined;
const noSpan: Span = { rename: nothing, set: nothing, fail: nothing };

/** Traces nothing. */
export const noTracing: Tracing = {
  on: false,
  traceparent: () => undefined,
  span: (_, work) => work(noSpan),
  close: () => Promise.resolve(),
};

const traceparentPattern = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The trace id of a traceparent; undefined for anything else. */
export const traceIdOf = (traceparent: string | undefined): string | undefined =>
  traceparent === undefined || traceparent === ''
    ? undefined
    : traceparentPattern.exec(traceparent)?.[1];

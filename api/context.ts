// Around every request: its id, its trace, its one wide log line, and an envelope for whatever goes wrong.
import type { Middleware, Next } from 'koa';
import { type ErrorCode, invalid } from '../lib/kernel/errors.ts';
import { newId } from '../lib/kernel/ids.ts';
import type { Log } from '../lib/kernel/log.ts';
import { describeError } from '../lib/kernel/redact.ts';
import { type Tracing, traceIdOf } from '../lib/kernel/tracing.ts';
import type { Mode } from '../lib/messages/rules.ts';
import type { Lines } from '../lib/pulse/lines.ts';
import { countAnswer, type Metrics } from '../lib/pulse/metrics.ts';
import { answerError, type Context, toServiceError } from './envelope.ts';
import { commonHeaders, transportHeaders } from './headers.ts';

export type RequestState = {
  requestId: string;
  /** Template of the route, never the path: paths carry ids. */
  route: string;
  errorCode: ErrorCode | undefined;
  /** What the log line says about the caller. */
  accountId: string | undefined;
  keyId: string | undefined;
  mode: Mode | undefined;
  /** What it says about the message; the phone is masked there. */
  messageId: string | undefined;
  phone: string | undefined;
  /** Who tries to get in without a credential; only keyed hashes of both are written. */
  login?: { email: string; source: string } | undefined;
  /** The jobs that a provider's call became: they may carry another call's request id. */
  jobs?: readonly string[] | undefined;
};

const acceptable = /^[A-Za-z0-9._-]{1,64}$/;

/** The caller's id of the request when it is one, else a new one. */
export const requestIdOf = (header: string): string => (acceptable.test(header) ? header : newId());

export type Deps = {
  log: Log;
  lines: Lines;
  metrics: Metrics;
  tracing: Tracing;
  activity: { requests: number };
};

/** How many Host headers there are, among names and values in turn. */
const countHosts = (rawHeaders: readonly string[]): number => {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
};

/** Node takes request lines and headers that cannot be read as an address; nothing behind this meets one. */
const requireAddress = (ctx: Context): void => {
  try {
    // Koa parses the target here, once, and keeps the result.
    void ctx.path;
  } catch {
    throw invalid({ field: 'path', issue: 'must be a path, or an absolute URL of this service' });
  }
  const hosts = countHosts(ctx.req.rawHeaders);
  if (hosts === 0 && ctx.req.httpVersion === '1.1') {
    throw invalid({ field: 'Host', issue: 'is required in HTTP/1.1' });
  }
  // RFC 9112 section 3.2. Node keeps the first of them, a proxy in front may have gone by the last.
  if (hosts > 1) throw invalid({ field: 'Host', issue: 'must be sent once' });
};

/** Runs the request; whatever it throws becomes an answer. */
const answered = async ({ log, metrics }: Deps, ctx: Context, next: Next): Promise<void> => {
  try {
    requireAddress(ctx);
    await next();
  } catch (thrown) {
    const error = toServiceError(thrown);
    ctx.state.errorCode = error.code;
    const { dimension, reason = 'none' } = error.extras;
    if (dimension !== undefined) metrics.refusals.add(dimension, reason);
    if (error.cause !== undefined) {
      const fields = { request_id: ctx.state.requestId, reason: describeError(error.cause) };
      const stack = error.code === 'INTERNAL_ERROR' ? stackOf(error.cause) : undefined;
      log.warn({ ...fields, stack }, `answered ${error.code}`);
    }
    answerError(ctx, error);
  }
};

/** The same in a span that goes on with the caller's trace; answers the id of the trace. */
const traced = (deps: Deps, ctx: Context, next: Next): Promise<string | undefined> => {
  const { tracing } = deps;
  const parent = ctx.get('traceparent') || undefined;
  const attributes = { 'http.request.method': ctx.method };
  return tracing.span({ kind: 'server', name: ctx.method, attributes, parent }, async (span) => {
    await answered(deps, ctx, next);
    const { route, requestId, errorCode } = ctx.state;
    span.rename(`${ctx.method} ${route}`);
    span.set({
      ...{ 'http.route': route, 'http.response.status_code': ctx.status },
      'tessera.request_id': requestId,
      ...(errorCode === undefined ? {} : { 'error.type': errorCode }),
    });
    if (ctx.status >= 500) span.fail(errorCode ?? String(ctx.status));
    return traceIdOf(tracing.traceparent());
  });
};

/** The outermost layer of the API. */
export const requestContext =
  (deps: Deps): Middleware<RequestState> =>
  async (ctx: Context, next: Next) => {
    const { lines, metrics, tracing, activity } = deps;
    const startedAt = performance.now();
    ctx.state.requestId = requestIdOf(ctx.get('X-Request-Id'));
    ctx.state.route = 'none';
    ctx.set('X-Request-Id', ctx.state.requestId);
    ctx.set(commonHeaders);
    if (ctx.secure) ctx.set(transportHeaders);
    activity.requests++;
    // A caller's trace is named in the log even when it is not continued.
    let traceId = traceIdOf(ctx.get('traceparent'));
    if (tracing.on) traceId = await traced(deps, ctx, next);
    else await answered(deps, ctx, next);
    activity.requests--;
    const ms = performance.now() - startedAt;
    const { method, status } = ctx;
    const { errorCode: error, ...state } = ctx.state;
    countAnswer(metrics, { method, route: state.route, status, error, ms });
    lines.request({ ...state, traceId, method, status, error, ms });
  };

/** Where it happened, without the message, which may hold anything. */
const stackOf = (error: unknown): string | undefined =>
  error instanceof Error
    ? error.stack
        ?.split('\n')
        .filter((line) => line.startsWith('    at '))
        .slice(0, 6)
        .map((line) => line.trim())
        .join(' | ')
    : undefined;

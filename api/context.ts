// Around every request: its id, its one wide log line, and an envelope for whatever goes wrong.
import type { Middleware, Next } from 'koa';
import type { ErrorCode } from '../lib/kernel/errors.ts';
import { newId } from '../lib/kernel/ids.ts';
import type { Log } from '../lib/kernel/log.ts';
import { describeError } from '../lib/kernel/redact.ts';
import { countAnswer, type Metrics } from '../lib/pulse/metrics.ts';
import { answerError, type Context, toServiceError } from './envelope.ts';

export type RequestState = {
  requestId: string;
  /** Template of the route, never the path: paths carry ids. */
  route: string;
  errorCode: ErrorCode | undefined;
  /** What the log line says about the caller. */
  accountId: string | undefined;
  mode: string | undefined;
};

const acceptable = /^[A-Za-z0-9._-]{1,64}$/;

const requestIdOf = (header: string): string => (acceptable.test(header) ? header : newId());

const logRequest = (log: Log, ctx: Context, ms: number): void => {
  const { requestId, route, errorCode, accountId, mode } = ctx.state;
  log.info(
    {
      ...{ request_id: requestId, method: ctx.method, route, status: ctx.status },
      ...{ error: errorCode, account_id: accountId, mode },
      ms: Math.round(ms * 10) / 10,
    },
    'request',
  );
};

type Deps = { log: Log; metrics: Metrics; activity: { requests: number } };

/** The outermost layer of the API. */
export const requestContext =
  ({ log, metrics, activity }: Deps): Middleware<RequestState> =>
  async (ctx: Context, next: Next) => {
    const startedAt = performance.now();
    ctx.state.requestId = requestIdOf(ctx.get('X-Request-Id'));
    ctx.state.route = 'none';
    activity.requests++;
    ctx.set('X-Request-Id', ctx.state.requestId);
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    try {
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
    activity.requests--;
    const ms = performance.now() - startedAt;
    const { method, status } = ctx;
    const { route, errorCode: error } = ctx.state;
    countAnswer(metrics, { ...{ method, route, status, error, ms } });
    logRequest(log, ctx, ms);
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

// Answers: {data} or {error}, and what every answer carries.
import type { ParameterizedContext } from 'koa';
import { isOutage } from '../lib/infra/outages.ts';
import { errorCatalogue, fail, ServiceError } from '../lib/kernel/errors.ts';
import type { RequestState } from './context.ts';

export type Context = ParameterizedContext<RequestState>;

const retrySeconds = 5;

/** The catalogue's error for whatever was thrown; anything unexpected is INTERNAL_ERROR and keeps its cause. */
export const toServiceError = (error: unknown): ServiceError => {
  if (error instanceof ServiceError) return error;
  if (isOutage(error)) {
    return fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds }, { cause: error });
  }
  return fail('INTERNAL_ERROR', {}, { cause: error });
};

export const answerData = (ctx: Context, data: unknown, status = 200): void => {
  ctx.status = status;
  ctx.type = 'application/json';
  ctx.body = JSON.stringify({ data });
};

/** The envelope of an error. */
export const errorBody = ({ code, message, extras }: ServiceError, requestId: string): string =>
  JSON.stringify({ error: { code, message, ...extras, request_id: requestId } });

export const answerError = (ctx: Context, error: ServiceError): void => {
  const { code, extras } = error;
  ctx.status = errorCatalogue[code].status;
  ctx.type = 'application/json';
  // RFC 9110 section 15.5.2: a 401 names the scheme that would be taken.
  if (ctx.status === 401) ctx.set('WWW-Authenticate', 'Bearer');
  if (extras.retry_after_seconds !== undefined) {
    ctx.set('Retry-After', String(extras.retry_after_seconds));
  }
  ctx.body = errorBody(error, ctx.state.requestId);
};

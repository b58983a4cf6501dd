// Runs an operation of the ops listener: its schemas first, then its handler; over HTTP and from a page alike.
import type { OpsApp } from '../../lib/ops-app.ts';
import { validate } from '../validate.ts';
import type { OpsCaller } from './auth.ts';
import type { OpsJsonRoute, OpsRequest } from './route.ts';

/** A request as it came, checked by nobody. */
export type Asked = {
  body?: unknown;
  params?: Record<string, string>;
  query?: Record<string, unknown>;
  caller: OpsCaller;
  requestId: string;
};

/** The answer of `route` to what was asked. @throws VALIDATION_ERROR, and whatever the operation throws */
export const ask = <B, P, Q, R>(
  app: OpsApp,
  route: OpsJsonRoute<B, P, Q, R>,
  asked: Asked,
): Promise<R> => {
  const { body = {}, params = {}, query = {}, caller, requestId } = asked;
  return route.handle(app, {
    body: route.body && validate(route.body, body, { name: 'body' }),
    params: route.params && validate(route.params, params, { name: 'path' }),
    query: route.query && validate(route.query, query, { name: 'query' }),
    ...{ caller, requestId },
  } as OpsRequest<B, P, Q>);
};

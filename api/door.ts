// What stands before Koa: a call whose lobby is full is turned away before anything else is done for it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Lobby, turnedAway } from '../lib/accounts/lobby.ts';
import type { ApiApp } from '../lib/app.ts';
import { errorCatalogue } from '../lib/kernel/errors.ts';
import { countAnswer } from '../lib/pulse/metrics.ts';
import { maxJsonBytes } from './body.ts';
import { requestIdOf } from './context.ts';
import { errorBody } from './envelope.ts';
import { commonHeaders } from './headers.ts';
import type { Route } from './route.ts';

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

type Guarded = { route: string; lobby: Lobby };

const guardedRoutes = (app: ApiApp, routes: readonly Route[]): Map<string, Guarded> => {
  const guarded = new Map<string, Guarded>();
  for (const route of routes) {
    if (route.kind !== 'json' || !route.lobby) continue;
    guarded.set(`${route.method} ${route.path}`, { route: route.path, lobby: route.lobby(app) });
  }
  return guarded;
};

/** Node reads an unread body past: one that says it is small. */
const isSmall = ({ headers }: IncomingMessage): boolean =>
  Number(headers['content-length']) <= maxJsonBytes;

/** The same answer that the lobby would come to behind Koa, at a fifth of its cost. */
const turnAway = (
  { metrics, lines }: Pick<ApiApp, 'metrics' | 'lines'>,
  route: string,
  request: IncomingMessage,
  response: ServerResponse,
): void => {
  const startedAt = performance.now();
  const requestId = requestIdOf(String(request.headers['x-request-id'] ?? ''));
  const error = turnedAway();
  const body = errorBody(error, requestId);
  const { status } = errorCatalogue[error.code];
  response.writeHead(status, {
    ...commonHeaders,
    'X-Request-Id': requestId,
    'Content-Type': 'application/json; charset=utf-8',
    'Retry-After': String(error.extras.retry_after_seconds),
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
  const { method = '' } = request;
  const answered = { method, route, status, error: error.code, ms: performance.now() - startedAt };
  countAnswer(metrics, answered);
  const nobody = { accountId: undefined, keyId: undefined, mode: undefined };
  const nothing = { messageId: undefined, phone: undefined, traceId: undefined };
  lines.request({ ...answered, requestId, ...nobody, ...nothing });
};

/** Hands requests on to `handle`, but for those whose lobby has no room. */
export const createDoor = (app: ApiApp, routes: readonly Route[], handle: Handle): Handle => {
  const guarded = guardedRoutes(app, routes);
  return (request, response) => {
    const found = guarded.get(`${request.method} ${request.url}`);
    if (!found?.lobby.isFull() || !isSmall(request)) return handle(request, response);
    return turnAway(app, found.route, request, response);
  };
};

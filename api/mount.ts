// From route values to Koa: each request goes authenticate, validate, handle, wrap, in this order.
import { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Lobby } from '../lib/accounts/lobby.ts';
import type { ApiApp } from '../lib/app.ts';
import { fail, ServiceError } from '../lib/kernel/errors.ts';
import { describeError } from '../lib/kernel/redact.ts';
import { jsonBody } from './body.ts';
import { callerOf } from './caller.ts';
import type { RequestState } from './context.ts';
import { answerData, type Context } from './envelope.ts';
import { createRawBodies, type RawBodies } from './raw-bodies.ts';
import type { CsvRoute, JsonRoute, RawAnswer, RawRoute, Request, Route } from './route.ts';
import { addressOf, sourceKeyOf } from './source.ts';
import { validate } from './validate.ts';

/** `/v1/otp/status/{message_id}` as the router writes it. */
const routerPath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1');

const input = (route: JsonRoute, ctx: Context) => ({
  body: route.body && validate(route.body, bodyOf(ctx) ?? {}, { name: 'body' }),
  params: route.params && validate(route.params, paramsOf(ctx), { name: 'path' }),
  query: route.query && validate(route.query, { ...ctx.query }, { name: 'query' }),
});

const bodyOf = (ctx: Context): unknown => (ctx.request as { body?: unknown }).body;
const paramsOf = (ctx: Context): unknown => ({ ...(ctx as { params?: object }).params });

const visitorOf = (ctx: Context) => ({
  ip: addressOf(ctx.ip).replace(/^::ffff:/, ''),
  userAgent: ctx.get('User-Agent'),
  source: sourceKeyOf(ctx.ip),
});

/** Refusals by a limit are shown to the account in its limits document. */
const noteRefusal = (app: ApiApp, ctx: Context, error: unknown): void => {
  const { accountId, requestId, route, mode = null } = ctx.state;
  if (accountId === undefined || !(error instanceof ServiceError)) return;
  const { code, extras } = error;
  if (extras.dimension === undefined) return;
  app.throttles.note(accountId, {
    ...{ at: new Date(app.clock.now()).toISOString(), code, reason: extras.reason ?? '' },
    ...{
      layer: extras.layer ?? 'origin',
      dimension: extras.dimension,
      limit: extras.limit ?? null,
    },
    window_seconds: extras.window_seconds ?? null,
    retry_after_seconds: extras.retry_after_seconds ?? null,
    ...{ operation: `${ctx.method} ${route}`, mode, request_id: requestId },
  });
};

/** What a body or an answer names, for the log line. */
const noteSubject = ({ state }: Context, named: unknown): void => {
  const { phone, message_id: messageId } = (named ?? {}) as Record<string, unknown>;
  if (typeof phone === 'string') state.phone = phone;
  if (typeof messageId === 'string') state.messageId = messageId;
};

const serveJson = (app: ApiApp, route: JsonRoute) => async (ctx: Context) => {
  const caller = await callerOf(app, ctx, route);
  if (route.body && bodyOf(ctx) === undefined)
    await jsonBody(ctx as never, () => Promise.resolve());
  const request = {
    ...caller,
    ...input(route, ctx),
    requestId: ctx.state.requestId,
    visitor: () => visitorOf(ctx),
    header: (name: string) => (name.toLowerCase() in ctx.headers ? ctx.get(name) : undefined),
    setHeaders: (headers: Record<string, string>) => ctx.set(headers),
  } as unknown as Request<'key', never, never, never>;
  noteSubject(ctx, request.body);
  const data = await route.handle(app, request).catch((error: unknown) => {
    noteRefusal(app, ctx, error);
    throw error;
  });
  noteSubject(ctx, data);
  answerData(ctx, data, route.status);
};

/**
 * The same behind a lobby: what waits there is an unread request. One whose body is still on its way is read first,
 * so that nobody holds a place by being slow.
 */
const serveInTurn = (app: ApiApp, route: JsonRoute, lobby: Lobby) => {
  const serve = serveJson(app, route);
  return async (ctx: Context): Promise<void> => {
    // By the next tick a body that came with its head is here.
    await Promise.resolve();
    if (!ctx.req.complete) await jsonBody(ctx as never, () => Promise.resolve());
    await lobby.enter(async () => {
      // Nobody hears the answer.
      if (ctx.req.socket.destroyed) throw fail('SERVICE_UNAVAILABLE');
      await serve(ctx);
    });
  };
};

const serveRaw = (app: ApiApp, route: RawRoute, bodies: RawBodies) => async (ctx: Context) => {
  const head = {
    query: new URLSearchParams(ctx.querystring),
    headers: ctx.headers,
    requestId: ctx.state.requestId,
  };
  const answer =
    route.refuse?.(app, head) ??
    (await bodies.read(ctx.req, route.maxBodyBytes, (body) =>
      route.handle(app, { ...head, body }),
    ));
  ctx.state.jobs = answer.jobs;
  sendRaw(ctx, answer, route.produces);
};

/** An answer as it is, with headers of its own. */
export const sendRaw = (ctx: Context, { status, body, headers = {} }: RawAnswer, type: string) => {
  ctx.status = status;
  ctx.type = type;
  ctx.set(headers);
  ctx.body = body;
};

/** What breaks after the first line can only be logged: the answer is broken off, which its reader sees. */
async function* loggedRows(app: ApiApp, requestId: string, rows: AsyncIterable<string>) {
  try {
    yield* rows;
  } catch (error) {
    app.log.warn({ request_id: requestId, reason: describeError(error) }, 'export broken off');
    throw error;
  }
}

const serveCsv = (app: ApiApp, route: CsvRoute) => async (ctx: Context) => {
  const caller = await callerOf(app, ctx, route);
  const query = route.query && validate(route.query, { ...ctx.query }, { name: 'query' });
  const rows = await route.rows(app, { ...caller, query } as never).catch((error: unknown) => {
    noteRefusal(app, ctx, error);
    throw error;
  });
  ctx.status = 200;
  ctx.type = 'text/csv; charset=utf-8';
  ctx.set('Content-Disposition', `attachment; filename="${route.file}"`);
  ctx.body = Readable.from(loggedRows(app, ctx.state.requestId, rows));
};

/** Lets so many calls run at once: above that they are refused rather than piled up. */
const createBound = (max: number) => {
  let running = 0;
  return async <T>(run: () => Promise<T>): Promise<T> => {
    if (running >= max) throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: 1 });
    running++;
    try {
      return await run();
    } finally {
      running--;
    }
  };
};

/** A sending route takes its place where the work begins: whoever is unknown, slow or wrong holds none. */
const withBound = (route: JsonRoute, bound: ReturnType<typeof createBound>): JsonRoute => ({
  ...route,
  handle: (app, request) => bound(() => route.handle(app, request)),
});

const createServe = (app: ApiApp) => {
  const bodies = createRawBodies();
  const bound = createBound(app.config.maxSendsInFlight);
  return (route: Route) => {
    if (route.kind === 'raw') return serveRaw(app, route, bodies);
    if (route.kind === 'csv') return serveCsv(app, route);
    if (route.lobby) return serveInTurn(app, route, route.lobby(app));
    return serveJson(app, route.sends ? withBound(route, bound) : route);
  };
};

/** A router with every route; unknown paths and methods are answered in the envelope too. */
export const mount = (app: ApiApp, routes: readonly Route[]) => {
  const router = new Router<RequestState>();
  const serverOf = createServe(app);
  for (const route of routes) {
    const serve = serverOf(route);
    router.register(routerPath(route.path), [route.method], async (ctx) => {
      ctx.state.route = route.path;
      await serve(ctx as unknown as Context);
    });
  }
  return router;
};

// From route values to Koa: each request goes authenticate, validate, handle, wrap, in this order.
import { Readable } from 'node:stream';
import Router from '@koa/router';
import type { Lobby } from '../lib/accounts/lobby.ts';
import { emailKey } from '../lib/accounts/rules.ts';
import type { ApiApp } from '../lib/app.ts';
import { fail, ServiceError } from '../lib/kernel/errors.ts';
import { describeError } from '../lib/kernel/redact.ts';
import type { Bodies } from './bodies.ts';
import { readJson } from './body.ts';
import { callerOf } from './caller.ts';
import type { RequestState } from './context.ts';
import { answerData, type Context } from './envelope.ts';
import type { Trust } from './intake.ts';
import type { CsvRoute, JsonRoute, RawAnswer, RawRoute, Request, Route } from './route.ts';
import { callerAddress, sourceKeyOf, sourceOf } from './source.ts';
import { validate } from './validate.ts';

/** `/v1/otp/status/{message_id}` as the router writes it. */
const routerPath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1');

const input = (route: JsonRoute, ctx: Context) => ({
  body: route.body && validate(route.body, bodyOf(ctx) ?? {}, { name: 'body' }),
  params: route.params && validate(route.params, paramsOf(ctx), { name: 'path' }),
  query: route.query && validate(route.query, { ...ctx.query }, { name: 'query' }),
});

/** What was read of the body; undefined before that. */
const bodyOf = (ctx: Context): unknown => (ctx.request as { body?: unknown }).body;
const readBody = async (ctx: Context, bodies: Bodies, trusted: boolean): Promise<void> => {
  (ctx.request as { body?: unknown }).body = await readJson(ctx, bodies, trusted);
};
const paramsOf = (ctx: Context): unknown => ({ ...(ctx as { params?: object }).params });

const visitorOf = (ctx: Context) => ({
  ip: callerAddress(ctx),
  userAgent: ctx.get('User-Agent'),
  source: sourceKeyOf(callerAddress(ctx)),
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
const noteSubject = ({ state, ip }: Context, named: unknown): void => {
  const { phone, email, message_id: messageId } = (named ?? {}) as Record<string, unknown>;
  if (typeof phone === 'string') state.phone = phone;
  if (typeof email === 'string' && state.accountId === undefined)
    state.login = { email: emailKey(email), source: sourceKeyOf(ip) };
  if (typeof messageId === 'string') state.messageId = messageId;
};

/** What requests are read with. */
type Reading = { bodies: Bodies; trust: Trust };

/**
 * Finds the caller before anything is read of the body. Tokens of `refresh` and `mfa` are looked at by the call itself,
 * behind the body: such a caller is a stranger until then.
 * @returns the caller, and whether a valid credential was shown
 */
const meetCaller = async (
  app: ApiApp,
  trust: Trust,
  route: JsonRoute | CsvRoute,
  ctx: Context,
): Promise<{ caller: object; trusted: boolean }> => {
  const caller = await callerOf(app, ctx, route);
  const trusted = route.auth === 'key' || route.auth === 'session' || route.auth === 'account';
  if (trusted) trust(ctx.req.socket);
  return { caller, trusted };
};

const serveJson =
  (app: ApiApp, { bodies, trust }: Reading, route: JsonRoute) =>
  async (ctx: Context) => {
    const { caller, trusted } = await meetCaller(app, trust, route, ctx);
    if (route.body && bodyOf(ctx) === undefined) await readBody(ctx, bodies, trusted);
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
const serveInTurn = (app: ApiApp, reading: Reading, route: JsonRoute, lobby: Lobby) => {
  const serve = serveJson(app, reading, route);
  return async (ctx: Context): Promise<void> => {
    // By the next tick a body that came with its head is here.
    await Promise.resolve();
    if (!ctx.req.complete) await readBody(ctx, reading.bodies, false);
    await lobby.enter(async () => {
      // Nobody hears the answer.
      if (ctx.req.socket.destroyed) throw fail('SERVICE_UNAVAILABLE');
      await serve(ctx);
    });
  };
};

// Whether a provider's call is signed is known only with its body, so it shares the limits of strangers.
const serveRaw = (app: ApiApp, bodies: Bodies, route: RawRoute) => async (ctx: Context) => {
  const head = {
    query: new URLSearchParams(ctx.querystring),
    headers: ctx.headers,
    requestId: ctx.state.requestId,
  };
  const sending = {
    limit: route.maxBodyBytes,
    trusted: false,
    source: () => sourceOf(callerAddress(ctx)),
  };
  const answer =
    route.refuse?.(app, head) ??
    (await bodies.read(ctx.req, sending, (body) => route.handle(app, { ...head, body })));
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

const serveCsv = (app: ApiApp, trust: Trust, route: CsvRoute) => async (ctx: Context) => {
  const { caller } = await meetCaller(app, trust, route, ctx);
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

const createServe = (app: ApiApp, reading: Reading) => {
  const bound = createBound(app.config.maxSendsInFlight);
  return (route: Route) => {
    if (route.kind === 'raw') return serveRaw(app, reading.bodies, route);
    if (route.kind === 'csv') return serveCsv(app, reading.trust, route);
    if (route.lobby) return serveInTurn(app, reading, route, route.lobby(app));
    return serveJson(app, reading, route.sends ? withBound(route, bound) : route);
  };
};

/** A router with every route; unknown paths and methods are answered in the envelope too. */
export const mount = (
  app: ApiApp,
  { routes, bodies, trust }: { routes: readonly Route[]; bodies: Bodies; trust: Trust },
) => {
  const router = new Router<RequestState>({ sensitive: true });
  const serverOf = createServe(app, { bodies, trust });
  for (const route of routes) {
    const serve = serverOf(route);
    router.register(routerPath(route.path), [route.method], async (ctx) => {
      ctx.state.route = route.path;
      await serve(ctx as unknown as Context);
    });
  }
  return router;
};

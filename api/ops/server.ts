// The Koa application of the ops listener: the token first, then the login, then the operations.
import Router from '@koa/router';
import Koa from 'koa';
import { fail } from '../../lib/kernel/errors.ts';
import type { OpsApp } from '../../lib/ops-app.ts';
import type { Bodies } from '../bodies.ts';
import { readJson } from '../body.ts';
import { type RequestState, requestContext } from '../context.ts';
import { answerData, type Context } from '../envelope.ts';
import type { Trust } from '../intake.ts';
import { ask } from './ask.ts';
import { type OpsCaller, readForm, requireOps } from './auth.ts';
import { login } from './login.ts';
import type { OpsFormRoute, OpsJsonRoute, OpsRoute, OpsTextRoute } from './route.ts';

// Pages are ours alone: no script, style, frame or form from or to anywhere else.
const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'self'; object-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'",
  // Without any referrer browsers would not say either where a form comes from.
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
};

const callerOf = (ctx: Context): OpsCaller =>
  (ctx.state as unknown as { caller: OpsCaller }).caller;
const paramsOf = (ctx: Context): Record<string, string> => ({
  ...(ctx as { params?: Record<string, string> }).params,
});

const serveJson = (app: OpsApp, bodies: Bodies, route: OpsJsonRoute) => async (ctx: Context) => {
  const body = (route.body && (await readJson(ctx, bodies, true))) ?? {};
  const answer = await ask(app, route, {
    ...{ body, params: paramsOf(ctx), query: { ...ctx.query } },
    ...{ caller: callerOf(ctx), requestId: ctx.state.requestId },
  });
  answerData(ctx, answer);
};

const serveText = (app: OpsApp, route: OpsTextRoute) => async (ctx: Context) => {
  const query = new URLSearchParams(ctx.querystring);
  const answer = await route.respond(app, {
    ...{ query, params: paramsOf(ctx), headers: ctx.headers },
    ...{ caller: callerOf(ctx), path: ctx.path, requestId: ctx.state.requestId },
    secure: ctx.secure,
  });
  ctx.status = answer.status ?? 200;
  ctx.type = answer.type;
  ctx.set(answer.headers ?? {});
  ctx.body = answer.body;
};

const serveForm = (app: OpsApp, bodies: Bodies, route: OpsFormRoute) => async (ctx: Context) => {
  const { to, headers } = await route.submit(app, {
    ...{ form: await readForm(ctx as never, bodies), params: paramsOf(ctx) },
    secure: ctx.secure,
    ...{ caller: callerOf(ctx), requestId: ctx.state.requestId },
  });
  ctx.set(headers);
  ctx.redirect(to);
  ctx.status = 303;
};

const serveRoute = (app: OpsApp, bodies: Bodies, route: OpsRoute) => {
  if (route.kind === 'json') return serveJson(app, bodies, route);
  return route.kind === 'text' ? serveText(app, route) : serveForm(app, bodies, route);
};

const routerPath = (path: string): string =>
  path.replace(/\{rest\}$/, '*rest').replace(/\{(\w+)\}/g, ':$1');

const mount = (app: OpsApp, bodies: Bodies, routes: readonly OpsRoute[]) => {
  const router = new Router<RequestState>({ sensitive: true });
  for (const route of routes) {
    const serve = serveRoute(app, bodies, route);
    router.register(routerPath(route.path), [route.method], async (ctx) => {
      ctx.state.route = route.path;
      await serve(ctx as unknown as Context);
    });
  }
  return router;
};

/** The ops listener over `app`. */
export const createOpsServer = (
  app: OpsApp,
  routes: readonly OpsRoute[],
  bodies: Bodies,
  trust: Trust,
): Koa<RequestState> => {
  // Whether TLS ended at a proxy, and under which name, is believed as the API believes addresses.
  const koa = new Koa<RequestState>({ proxy: (app.config.trustedProxies ?? 0) > 0 });
  koa.silent = true;
  const { clock, log, logouts } = app;
  const auth = { token: app.config.opsToken, clock, log, logouts, bodies, trust };
  koa.use(requestContext(app));
  koa.use((ctx, next) => {
    ctx.set(pageHeaders);
    return next();
  });
  koa.use(requireOps(auth));
  koa.use(login(auth));
  koa.use(mount(app, bodies, routes).routes() as Koa.Middleware<RequestState>);
  koa.use(() => {
    throw fail('NOT_FOUND');
  });
  return koa;
};

// The Koa application: context, routes, and an envelope for what no route takes.
import Koa from 'koa';
import type { ApiApp } from '../lib/app.ts';
import { fail } from '../lib/kernel/errors.ts';
import type { Bodies } from './bodies.ts';
import { type RequestState, requestContext } from './context.ts';
import type { Context } from './envelope.ts';
import { watchForwarded } from './forwarded.ts';
import type { Trust } from './intake.ts';
import { createMethodsAt, type MethodsAt } from './methods.ts';
import { mount, sendRaw } from './mount.ts';
import type { Route } from './route.ts';
import type { ServeDocs } from './routes/meta.ts';

/** 405 for a path that is written out, before a route with a parameter in its place takes the call. */
const refuseMethod =
  (methods: MethodsAt): Koa.Middleware<RequestState> =>
  (ctx, next) => {
    const allowed = methods.literal(ctx.path);
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    if (allowed.length === 0 || allowed.includes(method)) return next();
    ctx.set('Allow', allowed.join(', '));
    throw fail('METHOD_NOT_ALLOWED');
  };

/** The pages and assets below /docs. They are no operations of the API, so no routes. */
const docsPages =
  (app: ApiApp, serveDocs: ServeDocs): Koa.Middleware<RequestState> =>
  async (ctx, next) => {
    if (!ctx.path.startsWith('/docs/')) return next();
    ctx.state.route = '/docs/*';
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.set('Allow', 'GET, HEAD');
      throw fail('METHOD_NOT_ALLOWED');
    }
    const answer = await serveDocs(app, { headers: ctx.headers, path: ctx.path });
    sendRaw(ctx as unknown as Context, answer, 'text/html');
  };

/** What the public API serves, and what it reads requests with. */
export type Serving = {
  routes: readonly Route[];
  serveDocs: ServeDocs;
  bodies: Bodies;
  trust: Trust;
};

/** The public API over `app`. */
export const createServer = (
  app: ApiApp,
  { routes, serveDocs, bodies, trust }: Serving,
): Koa<RequestState> => {
  const koa = new Koa<RequestState>({ proxy: (app.config.trustedProxies ?? 0) > 0 });
  koa.maxIpsCount = app.config.trustedProxies ?? 0;
  koa.silent = true;
  const forwarded = watchForwarded(app);
  koa.use((ctx, next) => {
    forwarded(ctx.headers['x-forwarded-for']);
    return next();
  });
  koa.use(requestContext(app));
  koa.use(docsPages(app, serveDocs));
  const methods = createMethodsAt(routes);
  koa.use(refuseMethod(methods));
  koa.use(mount(app, { routes, bodies, trust }).routes() as Koa.Middleware<RequestState>);
  koa.use((ctx) => {
    const allowed = methods.matching(ctx.path);
    if (allowed.length === 0) throw fail('NOT_FOUND');
    ctx.set('Allow', allowed.join(', '));
    throw fail('METHOD_NOT_ALLOWED');
  });
  return koa;
};

// The Koa application: context, routes, and an envelope for what no route takes.
import Koa from 'koa';
import type { ApiApp } from '../lib/app.ts';
import { fail } from '../lib/kernel/errors.ts';
import { type RequestState, requestContext } from './context.ts';
import type { Context } from './envelope.ts';
import { mount, sendRaw } from './mount.ts';
import type { Route } from './route.ts';
import type { ServeDocs } from './routes/meta.ts';

const methodsAt = (routes: readonly Route[], path: string): string[] => {
  const literal = routes.filter((route) => route.path === path);
  const matching = routes.filter((route) =>
    new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}/?$`).test(path),
  );
  // A path that is written out is meant before one with a parameter in its place.
  return (literal.length > 0 ? literal : matching).map((route) => route.method);
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

/** The public API over `app`. */
export const createServer = (
  app: ApiApp,
  routes: readonly Route[],
  serveDocs: ServeDocs,
): Koa<RequestState> => {
  const koa = new Koa<RequestState>({ proxy: app.config.trustedProxies > 0 });
  koa.maxIpsCount = app.config.trustedProxies;
  koa.silent = true;
  koa.use(requestContext(app));
  koa.use(docsPages(app, serveDocs));
  koa.use(mount(app, routes).routes() as Koa.Middleware<RequestState>);
  koa.use((ctx) => {
    const allowed = methodsAt(routes, ctx.path);
    if (allowed.length === 0) throw fail('NOT_FOUND');
    ctx.set('Allow', [...new Set(allowed)].join(', '));
    throw fail('METHOD_NOT_ALLOWED');
  });
  return koa;
};

// Where a login leads: back to the page that was asked for, and never out of the console.
import type { Context as KoaContext } from 'koa';

export const homePath = '/ops';

const nowhere = 'http://ops.invalid';

/** The path and query of a page of the console; whatever is none is the overview. */
export const pageOrHome = (address: string | null | undefined): string => {
  if (!address?.startsWith('/')) return homePath;
  const url = URL.parse(address, nowhere);
  if (url?.origin !== nowhere) return homePath;
  const { pathname, search } = url;
  const isPage = /^\/ops(?:\/(?!api\/|assets\/|login|logout)|$)/.test(pathname);
  return isPage ? pathname + search : homePath;
};

/** The page that was asked for; of a form, the page it stood on, when the browser tells. */
export const askedPage = (ctx: KoaContext): string => {
  if (ctx.method === 'GET') return pageOrHome(ctx.originalUrl);
  const from = URL.parse(ctx.get('Referer'));
  return from?.host === ctx.host ? pageOrHome(from.pathname + from.search) : homePath;
};

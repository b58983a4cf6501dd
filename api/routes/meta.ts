// The API about itself: its document for programs, and its documentation for people.
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { ApiApp } from '../../lib/app.ts';
import { answerFile } from '../docs/serve.ts';
import { createSite, factsOf, type Site } from '../docs/site.ts';
import { type RawAnswer, type RawRequest, rawRoute } from '../route.ts';

type Json = Record<string, unknown>;

const fileOf = (document: Json) => {
  const text = JSON.stringify(document);
  return {
    type: 'application/json; charset=utf-8',
    etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 16)}"`,
    ...{ immutable: false, origin: null },
    // Compressed it takes a fifteenth of the memory.
    gzip: gzipSync(text),
  };
};

// One per process; made when first asked for.
const sites = new WeakMap<object, Site>();

const siteOf = (app: ApiApp, document: () => Json): Site => {
  const known = sites.get(app);
  if (known) return known;
  const site = createSite(() => factsOf(app, document()));
  sites.set(app, site);
  return site;
};

/** A page or asset of the documentation. */
export type ServeDocs = (
  app: ApiApp,
  request: Pick<RawRequest, 'headers'> & { path: string },
) => Promise<RawAnswer>;

/** `write` makes the OpenAPI document from the route values. */
export const createServeDocs =
  (write: () => Json): ServeDocs =>
  async (app, { headers, path }) => {
    const { status, file } = await siteOf(app, write).find(path);
    return answerFile(file, headers, status);
  };

/** The OpenAPI document, and the first page of the documentation; the others hang below it (server.ts). */
export const metaRoutes = (write: () => Json, serveDocs: ServeDocs) => {
  let file: ReturnType<typeof fileOf> | undefined;
  return [
    rawRoute({
      ...{ method: 'GET', path: '/openapi.json', tag: 'About', errors: [], maxBodyBytes: 0 },
      summary: 'This API as an OpenAPI 3.1 document.',
      produces: 'application/json',
      handle: (_, { headers }) => {
        file ??= fileOf(write());
        return Promise.resolve(answerFile(file, headers));
      },
    }),
    rawRoute({
      ...{ method: 'GET', path: '/docs', tag: 'About', errors: [], maxBodyBytes: 0 },
      summary: 'The documentation for people; its pages are also there as Markdown.',
      about:
        '`/docs/llms.txt` lists the pages; `.md` behind the address of a page gives it as Markdown.',
      produces: 'text/html',
      handle: (app, { headers }) => serveDocs(app, { headers, path: '/docs' }),
    }),
  ];
};

// Request bodies: JSON up to 64 KiB for our own routes, raw bytes for the providers'.
import type { IncomingMessage } from 'node:http';
import type { Middleware } from 'koa';
import { koaBody } from 'koa-body';
import getRawBody from 'raw-body';
import { fail, invalid } from '../lib/kernel/errors.ts';
import { namesTwice } from '../lib/kernel/json-members.ts';
import type { RequestState } from './context.ts';
import type { Context } from './envelope.ts';

export const maxJsonBytes = 64 * 1024;

type BodyError = { status?: unknown; type?: unknown };

/** koa-body tells a body that is too large from one that is no JSON by status and type alone. */
const toServiceError = (error: BodyError) => {
  if (error.status === 413 || error.type === 'entity.too.large') return fail('PAYLOAD_TOO_LARGE');
  return invalid({ field: 'body', issue: 'must be valid JSON in UTF-8' });
};

const parse = koaBody({
  json: true,
  jsonLimit: maxJsonBytes,
  jsonStrict: true,
  includeUnparsed: true,
  multipart: false,
  urlencoded: false,
  text: false,
  parsedMethods: ['POST', 'PATCH', 'DELETE'] as never,
  onError: (error) => {
    throw toServiceError(error as BodyError);
  },
});

const hasBody = ({ req }: Context): boolean =>
  req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;

// Who reads the first of two and who reads the last do not see the same request (reference 06 section 8.8).
const refuseDoubles = ({ request }: Context): void => {
  const { rawBody, body } = request as unknown as { rawBody?: string; body?: unknown };
  (request as { rawBody?: string | undefined }).rawBody = undefined;
  if (rawBody !== undefined && namesTwice(rawBody, body)) {
    throw invalid({ field: 'body', issue: 'must name each field once' });
  }
};

/** Parses the JSON body of a route that takes one. */
export const jsonBody: Middleware<RequestState> = async (ctx: Context, next) => {
  if (hasBody(ctx) && !ctx.request.is('json')) throw fail('UNSUPPORTED_MEDIA_TYPE');
  if (ctx.req.headers['content-encoding'] !== undefined) throw fail('UNSUPPORTED_MEDIA_TYPE');
  await parse(ctx as never, () => {
    refuseDoubles(ctx);
    return next();
  });
};

/** The bytes of a body as they came: signatures are made over them. */
export const readRawBody = async (request: IncomingMessage, limit: number): Promise<Buffer> => {
  try {
    return await getRawBody(request, { limit, length: request.headers['content-length'] ?? null });
  } catch (error) {
    throw toServiceError(error as BodyError);
  }
};

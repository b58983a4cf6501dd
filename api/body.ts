// JSON bodies of our own routes: up to 64 KiB, UTF-8, each member named once.
import { parse } from '@hapi/bourne';
import { fail, invalid } from '../lib/kernel/errors.ts';
import { namesTwice } from '../lib/kernel/json-members.ts';
import type { Bodies } from './bodies.ts';
import type { Context } from './envelope.ts';
import { callerAddress, sourceOf } from './source.ts';

export const maxJsonBytes = 64 * 1024;

/** What a body that names neither an object nor an array begins with is not taken for JSON (RFC 8259 allows more). */
const objectOrArray = /^[\t\n\r ]*[[{]/;
const utf8 = new TextDecoder('utf-8', { fatal: true });

const parseText = (text: string): unknown => {
  try {
    if (objectOrArray.test(text)) return parse(text);
  } catch {
    // Said below: the parser's own words may quote the body.
  }
  throw invalid({ field: 'body', issue: 'must be valid JSON in UTF-8' });
};

const decode = (bytes: Buffer): string => {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid({ field: 'body', issue: 'must be valid JSON in UTF-8' });
  }
};

const parseBody = (bytes: Buffer): unknown => {
  const text = decode(bytes);
  if (text === '') return {};
  const value = parseText(text);
  // Who reads the first of two and who reads the last do not see the same request.
  if (namesTwice(text, value)) throw invalid({ field: 'body', issue: 'must name each field once' });
  return value;
};

const hasBody = ({ req }: Context): boolean =>
  req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;

/**
 * Reads and parses the JSON body of a request; undefined when it has none.
 * @param trusted whether its caller showed a valid credential
 * @throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, VALIDATION_ERROR, SERVICE_UNAVAILABLE at the limits of all bodies
 */
export const readJson = async (
  ctx: Context,
  bodies: Bodies,
  trusted: boolean,
): Promise<unknown> => {
  if (hasBody(ctx) && !ctx.request.is('json')) throw fail('UNSUPPORTED_MEDIA_TYPE');
  if (ctx.req.headers['content-encoding'] !== undefined) throw fail('UNSUPPORTED_MEDIA_TYPE');
  if (!hasBody(ctx)) return undefined;
  const sending = { limit: maxJsonBytes, trusted, source: () => sourceOf(callerAddress(ctx)) };
  return bodies.read(ctx.req, sending, parseBody);
};

// How a compressed file goes out: cached by its name or checked by its ETag, and with nothing it does not need.
import type { IncomingHttpHeaders } from 'node:http';
import { gunzipSync } from 'node:zlib';
import type { RawAnswer } from '../route.ts';
import type { File } from './render.ts';

const policy = (origin: string | null): string => {
  const more = origin === null ? '' : ` ${origin}`;
  return [
    "default-src 'none'",
    `script-src 'self'${more}`,
    "style-src 'self'",
    "img-src 'self'",
    `connect-src 'self'${more}`,
    ...(origin === null ? [] : [`frame-src ${origin}`]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
};

const year = 365 * 24 * 60 * 60;

const takesGzip = (headers: IncomingHttpHeaders): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(headers['accept-encoding'] ?? ''));

const knows = (headers: IncomingHttpHeaders, etag: string): boolean =>
  String(headers['if-none-match'] ?? '')
    .split(',')
    .some((known) => known.trim().replace(/^W\//, '') === etag);

/** Files as they were before they were compressed: one buffer for all who ask, however slowly they read. */
const plain = new WeakMap<Buffer, Buffer>();

const plainOf = (gzip: Buffer): Buffer => {
  const known = plain.get(gzip);
  if (known) return known;
  const made = gunzipSync(gzip);
  plain.set(gzip, made);
  return made;
};

/** The answer with `file` to a request with these headers. */
export const answerFile = (
  { etag, type, immutable, origin, gzip }: Omit<File, 'url'>,
  headers: IncomingHttpHeaders,
  status: 200 | 404 = 200,
): RawAnswer => {
  const shared = {
    ETag: etag,
    'Cache-Control': immutable ? `public, max-age=${year}, immutable` : 'public, no-cache',
    Vary: 'Accept-Encoding',
    'Content-Type': type,
    'Content-Security-Policy': policy(origin),
    'Referrer-Policy': 'same-origin',
  };
  if (status === 200 && knows(headers, etag)) return { status: 304, body: '', headers: shared };
  return takesGzip(headers)
    ? { status, body: gzip, headers: { ...shared, 'Content-Encoding': 'gzip' } }
    : { status, body: plainOf(gzip), headers: shared };
};

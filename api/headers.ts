// What every answer tells browsers, proxies and caches, unless its route says otherwise.

/**
 * An answer of the API is data: a browser that is led to one must neither keep, guess at, render, run nor frame it.
 * Pages replace the policy by one of their own.
 */
export const commonHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  'Referrer-Policy': 'no-referrer',
} as const;

/** Of answers that left over TLS: browsers use nothing else for a year (RFC 6797 section 7.2: never over plain HTTP). */
export const transportHeaders = {
  'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
} as const;

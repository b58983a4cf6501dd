// Names of the console's cookies, and what they have in common.

/**
 * Over TLS a browser takes a cookie with this prefix from this very host alone, never over plain HTTP and never for a
 * neighbouring host (RFC 6265bis section 4.1.3.2). Over plain HTTP, which loopback is, it would not keep one.
 */
export const cookieNameOf = (name: string, secure: boolean): string =>
  secure ? `__Host-${name}` : name;

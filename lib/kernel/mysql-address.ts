// Where a MySQL server is, how to sign in there, and how the connection is protected: read off its URL.
import { isIP } from 'node:net';

/** As MySQL's own clients name them (https://dev.mysql.com/doc/refman/8.4/en/connection-options.html). */
export const tlsModes = [
  'DISABLED',
  'PREFERRED',
  'REQUIRED',
  'VERIFY_CA',
  'VERIFY_IDENTITY',
] as const;
export type TlsMode = (typeof tlsModes)[number];

export type MysqlAddress = {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  tls: {
    mode: TlsMode;
    /** PEM file of the authorities that may have signed the server's certificate; undefined: the public ones. */
    caFile: string | undefined;
  };
};

/** Thrown for an address that cannot be used; the message tells what must change and repeats no secret. */
export class MysqlAddressError extends Error {}

const form =
  'must be one address of the form mysql://host:3306/database, with user and password before the host';
const parameterNames = ['ssl-mode', 'ssl-ca'];

const parametersOf = (url: URL): Map<string, string> => {
  const given = new Map<string, string>();
  for (const [name, value] of url.searchParams) {
    if (!parameterNames.includes(name)) {
      const shown = name.slice(0, 40);
      throw new MysqlAddressError(
        `has the unknown parameter ${shown}; it may have ${parameterNames.join(' and ')}`,
      );
    }
    if (given.has(name)) throw new MysqlAddressError(`has ${name} twice`);
    if (value === '') throw new MysqlAddressError(`has ${name} without a value`);
    given.set(name, value);
  }
  return given;
};

const tlsOf = (url: URL, host: string): MysqlAddress['tls'] => {
  const given = parametersOf(url);
  const caFile = given.get('ssl-ca');
  // MySQL's clients take a CA file without a mode for VERIFY_CA, too.
  const named = given.get('ssl-mode') ?? (caFile === undefined ? 'DISABLED' : 'VERIFY_CA');
  const mode = tlsModes.find((known) => known === named);
  if (mode === undefined) {
    throw new MysqlAddressError(`has an unknown ssl-mode; it may be ${tlsModes.join(', ')}`);
  }
  if (caFile !== undefined && !mode.startsWith('VERIFY_')) {
    throw new MysqlAddressError(
      `has ssl-ca, which ssl-mode=${mode} does not look at; VERIFY_CA and VERIFY_IDENTITY do`,
    );
  }
  if (mode === 'VERIFY_CA' && caFile === undefined) {
    throw new MysqlAddressError('has ssl-mode=VERIFY_CA without ssl-ca, the file of the authority');
  }
  // The driver compares the certificate with names only: for a bare address it would compare with "localhost".
  if (mode === 'VERIFY_IDENTITY' && isIP(host) !== 0) {
    throw new MysqlAddressError(
      'has ssl-mode=VERIFY_IDENTITY with an IP address, which needs a host name; VERIFY_CA does not',
    );
  }
  return { mode, caFile };
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new MysqlAddressError('has a % that stands for nothing; a % itself is written %25');
  }
};

/**
 * Reads `mysql://user:password@host[:port]/database[?ssl-mode=…&ssl-ca=…]`; without ssl-mode the connection is not
 * encrypted.
 * @throws MysqlAddressError for what is no such address, and for parameters that are unknown or of no use together
 */
export const parseMysqlAddress = (text: string): MysqlAddress => {
  const url = URL.parse(text);
  if (url?.protocol !== 'mysql:' || url.hostname === '' || url.hash !== '') {
    throw new MysqlAddressError(form);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    host,
    port: Number(url.port || 3306),
    user: decoded(url.username),
    password: decoded(url.password),
    database: decoded(url.pathname.slice(1)),
    tls: tlsOf(url, host),
  };
};

// Connections to names that customers gave us: looked up once, checked, and made to exactly what was checked.
import { type LookupAddress, lookup as lookupHost } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import {
  type AddressRules,
  BlockedAddress,
  BlockedName,
  isMetadata,
  isPublicAddress,
} from './addresses.ts';

/** All addresses of a name. @throws an error with a code of node:dns */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

class NoAddress extends Error {
  readonly code = 'EAI_AGAIN';
}

const resolveWithin = { timeout: 1_500, tries: 2 };

/**
 * By DNS alone, beside the thread pool that the system's own look-up shares with everything else: four names that hang
 * would stop all others there.
 */
const resolveByDns = (): Resolve => {
  const resolver = new Resolver(resolveWithin);
  return async (hostname) => {
    const [four, six] = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ]);
    const found = [
      ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
      ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (found.length === 0) throw new NoAddress(`${hostname} has no address`);
    return found;
  };
};

/** As the system does, hosts file and all: for hosts that an operator named. */
const resolveBySystem: Resolve = (hostname) =>
  new Promise((resolve, reject) => {
    lookupHost(hostname, { all: true }, (error, found) => (error ? reject(error) : resolve(found)));
  });

type Passes = (address: string) => boolean;

/**
 * A look-up for sockets: what it answers is what is connected to, so a name that changes between two look-ups gains
 * nothing. One bad address among good ones is a trick, not a mistake: then none is good.
 */
const safeLookup =
  (resolve: Resolve, passes: Passes): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname).then(
      (found) => {
        const [first] = found;
        if (!first || !found.every(({ address }) => passes(address))) {
          return callback(new BlockedName(`${hostname} leads to no public address`), '', 0);
        }
        if (options.all) return callback(null, [...found]);
        return callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    );
  };

/**
 * Of several addresses each but the last has this long to connect, ms. Node's own 250 is less than a way around the
 * earth and back, and the last is often one of IPv6, which many machines cannot call at all.
 */
const oneAddressMs = 1_500;

/**
 * Makes connections for one kind of host: `trusted` are those that an operator named, everybody else's must be public.
 * `timeoutMs` bounds look-up, TCP and TLS together.
 */
export const createConnect = (options: {
  trusted: boolean;
  rules: AddressRules;
  timeoutMs: number;
  /** Is told when a connection is handed over. */
  connecting: { fresh: boolean };
  resolve?: Resolve;
}): buildConnector.connector => {
  const { trusted, rules, timeoutMs, connecting } = options;
  const resolve = options.resolve ?? (trusted ? resolveBySystem : resolveByDns());
  const passes: Passes = (address) =>
    trusted ? !isMetadata(address) : isPublicAddress(address, rules.denied);
  const lookup = safeLookup(resolve, passes);
  const connect = buildConnector({
    ...{ timeout: timeoutMs, allowH2: false, lookup },
    autoSelectFamilyAttemptTimeout: oneAddressMs,
  } as never);
  return (given, callback) => {
    const host = given.hostname.replace(/^\[|\]$/g, '');
    // Sockets ask no look-up for what is an address already.
    if (isIP(host) !== 0 && !passes(host)) {
      return callback(new BlockedAddress('no public address'), null);
    }
    const handOver = (...made: Parameters<typeof callback>): void => {
      connecting.fresh = true;
      try {
        callback(...made);
      } finally {
        connecting.fresh = false;
      }
    };
    return connect(given, handOver as typeof callback);
  };
};

// Which addresses may be called on somebody else's word: public ones, and those an operator has named.
import { lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Refused before any connection is attempted. */
export class BlockedAddress extends Error {
  readonly code = 'BLOCKED_ADDRESS';
}

const wellKnownNat64 = ipaddr.parseCIDR('64:ff9b::/96');

/** The address inside an IPv6 form that carries an IPv4 one, which is where it leads. */
const inner = (address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 => {
  if (address.kind() === 'ipv4') return address;
  const wide = address as ipaddr.IPv6;
  if (wide.isIPv4MappedAddress()) return wide.toIPv4Address();
  if (wide.match(wellKnownNat64 as [ipaddr.IPv6, number])) {
    return new ipaddr.IPv4(wide.toByteArray().slice(12));
  }
  return wide;
};

/**
 * Whether an IP address is one of the public internet. Everything else (private, loopback, link-local with the
 * metadata services, carrier NAT, multicast, tunnels, documentation, reserved) is not to be reached by a webhook.
 */
export const isPublicAddress = (text: string): boolean => {
  if (!ipaddr.isValid(text)) return false;
  return inner(ipaddr.parse(text)).range() === 'unicast';
};

/** `host` or `host:port` names, in lower case. */
export type Allowed = ReadonlySet<string>;

export const isAllowed = (allowed: Allowed, { hostname, host }: URL): boolean =>
  allowed.has(hostname.toLowerCase()) || allowed.has(host.toLowerCase());

// One private address among public ones is a trick, not a mistake.
const mayReach = (allowed: Allowed, hostname: string, found: readonly { address: string }[]) =>
  allowed.has(hostname.toLowerCase()) || found.every(({ address }) => isPublicAddress(address));

/**
 * A look-up for sockets that answers public addresses alone: what it answers is what is connected to, so a name that
 * changes between two look-ups gains nothing. `allowed` names skip the check.
 */
export const createSafeLookup =
  (allowed: Allowed): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '', 0);
      const [first] = addresses;
      if (!first || !mayReach(allowed, hostname, addresses)) {
        return callback(new BlockedAddress(`${hostname} is no public address`), '', 0);
      }
      if (options.all) callback(null, addresses as never);
      else callback(null, first.address, first.family);
    });
  };

/** Refuses a URL whose host is written as an address that is not public. @throws BlockedAddress */
export const requirePublic = (url: URL, allowed: Allowed): void => {
  if (isAllowed(allowed, url)) return;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isPublicAddress(host)) {
    throw new BlockedAddress(`${host} is no public address`);
  }
};

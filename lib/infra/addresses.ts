// Which addresses may be called on somebody else's word: public ones, and those an operator has named.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The address is written as one that is not called. Thrown before any connection is attempted. */
export class BlockedAddress extends Error {
  readonly code = 'BLOCKED_ADDRESS';
}

/** The name leads to an address that is not called. Thrown before any connection is attempted. */
export class BlockedName extends Error {
  readonly code = 'BLOCKED_NAME';
}

class UnusableUrl extends Error {
  readonly code = 'ERR_INVALID_URL';
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Range = [Address, number];

/** Reads `address/bits`, or one address alone. @throws Error when it is neither */
export const parseRange = (text: string): Range => {
  if (text.includes('/')) return ipaddr.parseCIDR(text);
  const address = ipaddr.parse(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
};

const isIn = (address: Address, [base, bits]: Range): boolean =>
  address.kind() === base.kind() && address.match(base as never, bits);

/** What no table of ranges knows: Azure's platform address, which is plain unicast. */
const platform = parseRange('168.63.129.16');
/** Where clouds answer with credentials: an operator's list never opens these. */
const metadata = [
  platform,
  ...['169.254.0.0/16', '100.100.100.200', '192.0.0.192', 'fd00:ec2::/32', 'fe80::/10'].map(
    parseRange,
  ),
];
/** All of IPv6 that is routed; ipaddr.js calls some of what lies outside unicast. */
const globalUnicast = parseRange('2000::/3');

/** The IPv4 address inside ::ffff:0:0/96, which is where a socket goes. */
const unwrapped = (text: string): Address | undefined => {
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.parse(text);
  const wide = address.kind() === 'ipv6' ? (address as ipaddr.IPv6) : undefined;
  return wide?.isIPv4MappedAddress() ? wide.toIPv4Address() : address;
};

/**
 * Whether an IP address is one of the public internet and not in `denied`. Everything else (private, loopback,
 * link-local with the metadata services, carrier NAT, multicast, tunnels, documentation, reserved) is not to be
 * reached by a webhook.
 */
export const isPublicAddress = (text: string, denied: readonly Range[] = []): boolean => {
  const address = unwrapped(text);
  if (address?.range() !== 'unicast') return false;
  if (address.kind() === 'ipv6' && !isIn(address, globalUnicast)) return false;
  return ![platform, ...denied].some((range) => isIn(address, range));
};

/** Whether an address is one that even an operator's list does not open. */
export const isMetadata = (text: string): boolean => {
  const address = unwrapped(text);
  return address === undefined || metadata.some((range) => isIn(address, range));
};

/** `host` or `host:port` names, in lower case. */
export type Allowed = ReadonlySet<string>;

export type AddressRules = {
  /** Public addresses that are not called either: our own, and what an operator adds. */
  denied?: readonly Range[];
  /** Ports that may be called; none named: all. */
  ports?: ReadonlySet<number>;
};

export const isAllowed = (allowed: Allowed, { hostname, host }: URL): boolean =>
  allowed.has(hostname.toLowerCase()) || allowed.has(host.toLowerCase());

/** Names that lead into the network they are asked in, or into nobody's. */
const localName = /^[^.]+$|\.$|\.(local|localhost|internal|intranet|lan|home\.arpa)$/i;

const httpsPort = 443;

const requireForm = (url: URL, { ports }: AddressRules): void => {
  if (url.protocol !== 'https:') throw new UnusableUrl('only https is called');
  const port = Number(url.port || httpsPort);
  if (ports && ports.size > 0 && !ports.has(port)) {
    throw new UnusableUrl(`port ${port} is not called`);
  }
};

/**
 * Refuses a URL that is not to be called as it is written. What its name leads to is checked where the connection is
 * made. Hosts in `allowed` skip everything but the metadata services.
 * @throws BlockedAddress, or an error with the code ERR_INVALID_URL
 */
export const requireCallable = (url: URL, allowed: Allowed, rules: AddressRules = {}): void => {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const literal = isIP(host) !== 0;
  if (url.username || url.password) throw new UnusableUrl('a URL with a user name or password');
  if (isAllowed(allowed, url)) {
    if (literal && isMetadata(host)) throw new BlockedAddress('a metadata service');
    return;
  }
  if (literal ? !isPublicAddress(host, rules.denied) : localName.test(host)) {
    throw new BlockedAddress('no public address');
  }
  requireForm(url, rules);
};

// Which addresses may be called on somebody else's word: public ones, and those an operator has named.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { isOpenTo, type OpenHosts } from '../kernel/open-hosts.ts';

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

/** Where calls on somebody else's word may go. */
export type AddressRules = {
  /** Hosts that are called for some accounts although they are not public. */
  open: OpenHosts;
  /** Public addresses that are not called either: our own, and what an operator adds. */
  denied?: readonly Range[];
  /** Ports that may be called; none named: all. */
  ports?: ReadonlySet<number>;
};

/**
 * Endings of names that lead into the network they are asked in, or nowhere: RFC 6761 and 6762 (localhost, local and the
 * private ones of its appendix G), RFC 8375 (home.arpa), ICANN's internal, and the services of a Kubernetes cluster.
 */
export const localEndings = [
  ...['local', 'localhost', 'internal', 'intranet', 'private', 'corp', 'home', 'lan'],
  ...['home.arpa', 'svc'],
];

/** Also names without a dot, and names with a dot at their end, which another way of writing would hide. */
const localName = new RegExp(
  `^[^.]+$|\\.$|\\.(${localEndings.join('|').replace('.', '\\.')})$`,
  'i',
);

const httpsPort = 443;

/** Why a URL is not called; `issue` goes on behind its name, for whoever wrote it. */
export type Refusal = { code: 'BLOCKED_ADDRESS' | 'ERR_INVALID_URL'; issue: string };

const blocked = (issue: string): Refusal => ({ code: 'BLOCKED_ADDRESS', issue });
const unusable = (issue: string): Refusal => ({ code: 'ERR_INVALID_URL', issue });

const refusalOfForm = (url: URL, { ports }: AddressRules): Refusal | undefined => {
  if (url.protocol !== 'https:') return unusable('must be an https address');
  const port = Number(url.port || httpsPort);
  if (!ports || ports.size === 0 || ports.has(port)) return undefined;
  return unusable(`names port ${port}; allowed are ${[...ports].join(', ')}`);
};

/**
 * Why a URL is not to be called for an account as it is written; undefined when it may be. What its name leads to is
 * checked where the connection is made. Hosts that are open to the account skip everything but the metadata services.
 */
export const refusalOf = (
  url: URL,
  accountId: string,
  rules: AddressRules,
): Refusal | undefined => {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const literal = isIP(host) !== 0;
  if (host === '' || url.username || url.password) {
    return unusable('must be an https address with a host and without a user name or password');
  }
  if (isOpenTo(rules.open, url, accountId)) {
    if (!literal || !isMetadata(host)) return undefined;
    return blocked(`names ${host}, a metadata service, which is never called`);
  }
  if (literal && !isPublicAddress(host, rules.denied)) {
    return blocked(`names ${host}, which is no public address that is called here`);
  }
  if (!literal && localName.test(host)) {
    return blocked(
      `names ${host}, a host of a private network; it must be a public name with a dot, without one at its end, not under ${localEndings.map((ending) => `.${ending}`).join(', ')}`,
    );
  }
  return refusalOfForm(url, rules);
};

/** Refuses what `refusalOf` refuses. @throws BlockedAddress, or an error with the code ERR_INVALID_URL */
export const requireCallable = (url: URL, accountId: string, rules: AddressRules): void => {
  const refusal = refusalOf(url, accountId, rules);
  if (!refusal) return;
  if (refusal.code === 'BLOCKED_ADDRESS') throw new BlockedAddress(refusal.issue);
  throw new UnusableUrl(refusal.issue);
};

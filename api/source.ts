// Who a call comes from, as far as limits care: an IPv4 address, or the network of an IPv6 one.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { sourceName } from '../lib/kernel/source.ts';

/** Some proxies write the port behind the address, 198.51.100.7:40312 or [2001:db8::7]:40312; each connection has another. */
export const addressOf = (ip: string): string =>
  /^\[([^\]]+)\](?::\d+)?$/.exec(ip)?.[1] ?? /^([\d.]+):\d+$/.exec(ip)?.[1] ?? ip;

type Call = { ip: string; req: { socket: { remoteAddress?: string | undefined } } };

/**
 * The address that a call comes from, without port and zone: the one that a believed proxy names, or, where that is no
 * address, the one that the connection has.
 */
export const callerAddress = ({ ip, req }: Call): string => {
  const [named = ''] = addressOf(ip).split('%');
  const address = isIP(named) === 0 ? (req.socket.remoteAddress ?? '') : named;
  return address.replace(/^::ffff:/, '');
};

/** An opaque name of where a call comes from; limits count by it, and by the wider network it begins with. */
export const sourceKeyOf = (ip: string): string => sourceName(sourceOf(ip), prefixOf(ip, 3));

/** The first 64 bits of an IPv6 address are one customer's; an IPv4 address inside IPv6 is that address. */
export const sourceOf = (ip: string): string => prefixOf(ip, 4);

/** So many groups of 16 bits of an IPv6 address, or the whole of an IPv4 one. */
const prefixOf = (ip: string, groups: number): string => {
  const plain = addressOf(ip);
  if (isIP(plain) === 0) return plain;
  const address = ipaddr.process(plain);
  return address instanceof ipaddr.IPv6
    ? address.parts
        .slice(0, groups)
        .map((part) => part.toString(16))
        .join(':')
    : address.toString();
};

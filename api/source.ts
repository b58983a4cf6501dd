// Who a call comes from, as far as limits care: an IPv4 address, or the network of an IPv6 one.
import { isIPv6 } from 'node:net';
import { sha256Hex } from '../lib/kernel/secrets.ts';

/** An opaque name of where a call comes from; limits count by it. */
export const sourceKeyOf = (ip: string): string => sha256Hex(sourceOf(ip));

/** The first 64 bits of an IPv6 address are one customer's; an IPv4 address inside IPv6 is that address. */
export const sourceOf = (ip: string): string => {
  const plain = ip.replace(/^::ffff:/, '');
  if (!isIPv6(plain)) return plain;
  const [head = '', tail = ''] = plain.split('::');
  const groups = head.split(':').filter(Boolean);
  const last = tail.split(':').filter(Boolean);
  const zeros = plain.includes('::') ? Array(8 - groups.length - last.length).fill('0') : [];
  return [...groups, ...zeros, ...last].slice(0, 4).join(':');
};

// The opaque name of where a call comes from. It begins with the name of the wider network, so both are counted by one.
import { sha256Hex } from './secrets.ts';

const networkLength = 24;
const addressLength = 40;

/** The name of an address (an IPv4 address, or the first 64 bits of an IPv6 one) within its wider network (48 bits). */
export const sourceName = (address: string, network: string): string =>
  sha256Hex(network).slice(0, networkLength) + sha256Hex(address).slice(0, addressLength);

/** The name of the wider network of a source; an IPv4 address is a network of its own. */
export const networkOf = (source: string): string => source.slice(0, networkLength);

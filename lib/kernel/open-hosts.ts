// WEBHOOK_ALLOWED_HOSTS: hosts that are not public and that the webhooks of named accounts may reach.
import Joi from 'joi';
import type { Schema } from './schema.ts';

/** Every account; for simulated providers only. */
export const everyAccount = '*';

/** Accounts by id, lower case, or every account. */
export type OpenTo = typeof everyAccount | ReadonlySet<string>;

/** By `host` or `host:port`, in lower case. */
export type OpenHosts = ReadonlyMap<string, OpenTo>;

const listMost = 20_000;
const hostPattern =
  /^([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])(:\d{1,5})?$/;
const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const form =
  'host=account, or host:port=account; several account ids with | between them, several hosts with commas';

/** Reads what stands between two commas. @throws Error that says what is wrong with it */
const readEntry = (entry: string): [string, OpenTo] => {
  const [host = '', accounts, ...more] = entry.toLowerCase().split('=');
  if (!hostPattern.test(host)) {
    throw new Error(`'${host}' is no host (a name or an address, IPv6 in brackets); write ${form}`);
  }
  if (accounts === undefined || accounts === '' || more.length > 0) {
    throw new Error(`${host} must name the accounts it is open to; write ${form}`);
  }
  if (accounts === everyAccount) return [host, everyAccount];
  const ids = accounts.split('|');
  const wrong = ids.find((id) => !idPattern.test(id));
  if (wrong !== undefined) {
    throw new Error(`'${wrong}' behind ${host} is no account id; write ${form}`);
  }
  return [host, new Set(ids)];
};

const readAll = (value: string): OpenHosts => {
  const read = new Map<string, OpenTo>();
  for (const entry of value.split(',')) {
    const [host, accounts] = readEntry(entry);
    if (read.has(host)) throw new Error(`${host} is named twice; write ${form}`);
    read.set(host, accounts);
  }
  return read;
};

/** Reads the setting; empty: no host is open. */
export const openHosts = (): Schema<OpenHosts> =>
  Joi.string()
    .max(listMost)
    .custom((value: string, helpers) => {
      try {
        return readAll(value);
      } catch (error) {
        // Braces would be read as a template.
        const custom = (error as Error).message.replace(/[{}]/g, '');
        return helpers.message({ custom });
      }
    })
    .default(new Map()) as unknown as Schema<OpenHosts>;

/** The first host that is open to every account; undefined when there is none. */
export const openToEveryAccount = (hosts: OpenHosts): string | undefined =>
  [...hosts].find(([, accounts]) => accounts === everyAccount)?.[0];

/** Whether a host is open to an account. */
export const isOpenTo = (
  hosts: OpenHosts,
  { hostname, port, protocol }: Pick<URL, 'hostname' | 'port' | 'protocol'>,
  accountId: string,
): boolean => {
  // A URL does not keep the port that is its scheme's own.
  const standard = protocol === 'https:' ? '443' : '80';
  return [hostname, `${hostname}:${port || standard}`].some((name) => {
    const accounts = hosts.get(name.toLowerCase());
    return accounts === everyAccount || (accounts?.has(accountId.toLowerCase()) ?? false);
  });
};

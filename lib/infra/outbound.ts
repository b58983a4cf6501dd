// Calls to addresses that customers gave us: one deadline over all, bounded answers, no redirects, no private hosts.
import { Agent, type Dispatcher } from 'undici';
import { isOpenTo } from '../kernel/open-hosts.ts';
import type { OutboundResult } from '../kernel/outbound.ts';
import { type AddressRules, requireCallable } from './addresses.ts';
import { type Connecting, exchange, reasonOf } from './exchange.ts';
import { createConnect, type Resolve } from './safe-connect.ts';

export type OutboundCall = {
  /** Whose address it is: some hosts are open to some accounts only. */
  accountId: string;
  url: string;
  headers: Record<string, string>;
  body: string;
};

export type Outbound = {
  /** Posts once; never throws. */
  post(call: OutboundCall): Promise<OutboundResult>;
  close(): Promise<void>;
};

const connectMs = 5_000;
/** An address is looked up again at least this often. */
const socketLifeMs = 60_000;
const targetsMost = 20_000;

type Target = { dispatcher: Dispatcher; origin: string; path: string };

/** `deadlineMs` bounds a whole call, the answer's body included; how many run at once is the caller's business. */
export const createOutbound = (options: {
  rules: AddressRules;
  deadlineMs: number;
  /** For tests: how the names of customers are looked up. */
  resolve?: Resolve;
}): Outbound => {
  const { rules, deadlineMs, resolve } = options;
  const shared = {
    ...{ connections: null, pipelining: 1, clientTtl: socketLifeMs },
    ...{ keepAliveTimeout: 10_000, keepAliveMaxTimeout: socketLifeMs },
    ...{ headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 16_384, allowH2: false },
  };
  const connecting: Connecting = { fresh: false };
  const open = (trusted: boolean) => {
    const resolving = resolve && !trusted ? { resolve } : {};
    const given = { trusted, rules, timeoutMs: connectMs, connecting, ...resolving };
    const connect = createConnect(given);
    return new Agent({ ...shared, connect });
  };
  const guarded = open(false);
  const named = open(true);

  const targets = new Map<string, Target>();
  const read = ({ url, accountId }: OutboundCall): Target => {
    const target = new URL(url);
    requireCallable(target, accountId, rules);
    const { origin, pathname, search } = target;
    const dispatcher = isOpenTo(rules.open, target, accountId) ? named : guarded;
    return { dispatcher, origin, path: pathname + search };
  };
  /** As it was read before: what is refused is no target and is read anew. Another account's word for it counts for nothing. */
  const targetOf = (call: OutboundCall): Target => {
    const key = `${call.accountId} ${call.url}`;
    const known = targets.get(key);
    if (known) return known;
    const target = read(call);
    if (targets.size >= targetsMost) targets.clear();
    targets.set(key, target);
    return target;
  };

  return {
    post: (call) => {
      try {
        const { dispatcher, origin, path } = targetOf(call);
        const { headers, body } = call;
        const options = { origin, path, method: 'POST' as const, headers, body };
        return exchange({ dispatcher, options, connecting, deadlineMs });
      } catch (error) {
        return Promise.resolve({ kind: 'none', reason: reasonOf(error), durationMs: 0 });
      }
    },
    close: async () => {
      await Promise.all([guarded.destroy(), named.destroy()]);
    },
  };
};

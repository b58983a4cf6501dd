// Calls to addresses that customers gave us: one deadline over all, bounded answers, no redirects, no private hosts.
import { Agent, type Dispatcher } from 'undici';
import type { NoAnswer, OutboundResult } from '../kernel/outbound.ts';
import { type AddressRules, type Allowed, isAllowed, requireCallable } from './addresses.ts';
import { createConnect, type Resolve } from './safe-connect.ts';

export type Outbound = {
  /** Posts once; never throws. */
  post(url: string, headers: Record<string, string>, body: string): Promise<OutboundResult>;
  close(): Promise<void>;
};

const connectMs = 5_000;
/** More of an answer is not read: nobody's page fills our memory. */
const readMost = 64 * 1024;
/** An address is looked up again at least this often. */
const socketLifeMs = 60_000;
const targetsMost = 20_000;

const codeOf = (error: unknown): string => {
  const named = error as { code?: unknown; name?: unknown; cause?: unknown } | null;
  if (named?.code === 'BLOCKED_ADDRESS' || named?.code === 'BLOCKED_NAME') return named.code;
  if (named?.cause) return codeOf(named.cause);
  // A deadline is a DOMException, whose code is a number that says nothing.
  return typeof named?.code === 'string' ? named.code : String(named?.name ?? '');
};

const reasons: [RegExp, NoAnswer][] = [
  [/BLOCKED_ADDRESS/, 'blocked_address'],
  [/BLOCKED_NAME/, 'blocked_name'],
  [/ERR_INVALID_URL|UND_ERR_INVALID_ARG/, 'bad_url'],
  [/ENOTFOUND|EAI_/, 'dns'],
  [/TimeoutError|ABORT|TIMEOUT|ETIMEDOUT/i, 'timeout'],
  [/ECONNREFUSED|EHOSTUNREACH|ENETUNREACH/, 'connection'],
  [/CERT|TLS|SSL|SELF_SIGNED|ALTNAME|EPROTO/, 'tls'],
];

const reasonOf = (error: unknown): NoAnswer => {
  const code = codeOf(error);
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'reset';
};

class DeadlinePassed extends Error {
  readonly code = 'TIMEOUT';
}

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

type Target = { dispatcher: Dispatcher; origin: string; path: string };

/**
 * One request to its end, wherever it is at the deadline, and reading no more of the answer than is allowed; never
 * rejects. The dispatcher's own handler and one promise: streams, signals and layers cost more than the rest of the call.
 */
const exchange = (
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  deadlineMs: number,
): Promise<OutboundResult> =>
  new Promise((resolve) => {
    const startedAt = performance.now();
    let running: Dispatcher.DispatchController | undefined;
    let status = 0;
    let retryAfter: string | undefined;
    let size = 0;
    let settled = false;
    const settle = (reason: NoAnswer | undefined): void => {
      settled = true;
      clearTimeout(timer);
      const durationMs = Math.round(performance.now() - startedAt);
      if (reason) resolve({ kind: 'none', reason, durationMs });
      else resolve({ kind: 'answer', status, retryAfter, durationMs });
    };
    const abandon = (reason: NoAnswer | undefined): void => {
      settle(reason);
      running?.abort(new DeadlinePassed());
    };
    const timer = setTimeout(() => abandon('timeout'), deadlineMs);
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (controller) => {
        running = controller;
        if (settled) controller.abort(new DeadlinePassed());
      },
      onResponseStart: (_controller, code, headers) => {
        // What comes before the answer (100, 103) is none.
        if (code < 200) return;
        status = code;
        retryAfter = textOf(headers['retry-after']);
      },
      onResponseData: (_controller, chunk) => {
        size += chunk.length;
        if (size > readMost && status > 0 && !settled) abandon(undefined);
      },
      onResponseEnd: () => {
        if (!settled && status > 0) settle(undefined);
      },
      onResponseError: (_controller, error) => {
        if (!settled) settle(reasonOf(error));
      },
    };
    try {
      dispatcher.dispatch(options, handler);
    } catch (error) {
      if (!settled) settle(reasonOf(error));
    }
  });

/** `deadlineMs` bounds a whole call, the answer's body included; how many run at once is the caller's business. */
export const createOutbound = (options: {
  allowed: Allowed;
  rules?: AddressRules;
  deadlineMs: number;
  /** For tests: how the names of customers are looked up. */
  resolve?: Resolve;
}): Outbound => {
  const { allowed, deadlineMs, resolve, rules = {} } = options;
  const shared = {
    ...{ connections: null, pipelining: 1, keepAliveTimeout: 10_000, clientTtl: socketLifeMs },
    ...{ headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 16_384, allowH2: false },
  };
  const open = (trusted: boolean) => {
    const resolving = resolve && !trusted ? { resolve } : {};
    const connect = createConnect({ trusted, rules, timeoutMs: connectMs, ...resolving });
    return new Agent({ ...shared, connect });
  };
  const guarded = open(false);
  const named = open(true);

  const targets = new Map<string, Target>();
  const read = (url: string): Target => {
    const target = new URL(url);
    requireCallable(target, allowed, rules);
    const { origin, pathname, search } = target;
    const dispatcher = isAllowed(allowed, target) ? named : guarded;
    return { dispatcher, origin, path: pathname + search };
  };
  /** As it was read before: what is refused is no target and is read anew. */
  const targetOf = (url: string): Target => {
    const known = targets.get(url);
    if (known) return known;
    const target = read(url);
    if (targets.size >= targetsMost) targets.clear();
    targets.set(url, target);
    return target;
  };

  return {
    post: (url, headers, body) => {
      try {
        const { dispatcher, origin, path } = targetOf(url);
        return exchange(dispatcher, { origin, path, method: 'POST', headers, body }, deadlineMs);
      } catch (error) {
        return Promise.resolve({ kind: 'none', reason: reasonOf(error), durationMs: 0 });
      }
    },
    close: async () => {
      await Promise.all([guarded.destroy(), named.destroy()]);
    },
  };
};

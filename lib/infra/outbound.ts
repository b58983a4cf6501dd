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
type Answer = { status: number; retryAfter: string | undefined };

/**
 * One request to its end: rejects at the deadline wherever it is by then, and reads no more of the answer than is
 * allowed. The dispatcher's own handler, since streams and signals cost more than the rest of the call.
 */
const exchange = (
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  deadlineMs: number,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let running: Dispatcher.DispatchController | undefined;
    let answer: Answer | undefined;
    let size = 0;
    let settled = false;
    const settle = (end: () => void): void => {
      settled = true;
      clearTimeout(timer);
      end();
    };
    const abandon = (end: () => void): void => {
      settle(end);
      running?.abort(new DeadlinePassed());
    };
    const timer = setTimeout(() => abandon(() => reject(new DeadlinePassed())), deadlineMs);
    dispatcher.dispatch(options, {
      onRequestStart: (controller) => {
        running = controller;
        if (settled) controller.abort(new DeadlinePassed());
      },
      onResponseStart: (_controller, status, headers) => {
        if (status >= 200) answer = { status, retryAfter: textOf(headers['retry-after']) };
      },
      onResponseData: (_controller, chunk) => {
        size += chunk.length;
        const enough = answer;
        if (size > readMost && enough && !settled) abandon(() => resolve(enough));
      },
      onResponseEnd: () => {
        const whole = answer;
        if (!settled && whole) settle(() => resolve(whole));
      },
      onResponseError: (_controller, error) => {
        if (!settled) settle(() => reject(error));
      },
    });
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

  const call = (url: string, headers: Record<string, string>, body: string): Promise<Answer> => {
    const { dispatcher, origin, path } = targetOf(url);
    return exchange(dispatcher, { origin, path, method: 'POST', headers, body }, deadlineMs);
  };

  return {
    post: async (url, headers, body) => {
      const startedAt = performance.now();
      const took = () => Math.round(performance.now() - startedAt);
      try {
        const answer = await call(url, headers, body);
        return { kind: 'answer', ...answer, durationMs: took() };
      } catch (error) {
        return { kind: 'none', reason: reasonOf(error), durationMs: took() };
      }
    },
    close: async () => {
      await Promise.all([guarded.destroy(), named.destroy()]);
    },
  };
};

// One request to an address that a customer gave us: to its end, or to the deadline.
import type { Dispatcher } from 'undici';
import type { NoAnswer, OutboundResult } from '../kernel/outbound.ts';

/** More of an answer is not read: nobody's page fills our memory. */
const readMost = 64 * 1024;

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
  [/CERT|TLS|SSL|SELF_SIGNED|ALTNAME|EPROTO|UNABLE_TO|SIGNATURE|CRL|INVALID_CA|HOSTNAME/, 'tls'],
];

/** Why there is no answer, of what undici, Node or our own rules threw. */
export const reasonOf = (error: unknown): NoAnswer => {
  const code = codeOf(error);
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'reset';
};

class DeadlinePassed extends Error {
  readonly code = 'TIMEOUT';
}

/**
 * Whether a connection is just being handed over: what begins or fails at that moment does so on a fresh one, everything
 * else on one that has carried an answer already.
 */
export type Connecting = { fresh: boolean };

const closed = /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/;
/** A connection that its other side had closed already says so this soon, ms; later, somebody was at work on it. */
const staleWithinMs = 1_000;

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

/**
 * One request to its end, wherever it is at the deadline, and reading no more of the answer than is allowed. One object
 * that is the dispatcher's own handler: streams, signals, layers and closures cost more than the rest of the call.
 */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly startedAt = performance.now();
  private readonly timer: NodeJS.Timeout;
  private readonly call: Call;
  private readonly resolve: (result: OutboundResult) => void;
  private running: Dispatcher.DispatchController | undefined;
  private fresh = false;
  private repeated = false;
  private status = 0;
  private retryAfter: string | undefined;
  private size = 0;
  private settled = false;

  constructor(call: Call, resolve: (result: OutboundResult) => void) {
    this.call = call;
    this.resolve = resolve;
    this.timer = setTimeout(abandonLate, call.deadlineMs, this);
  }

  begin(): void {
    if (this.settled) return;
    const { dispatcher, options } = this.call;
    try {
      dispatcher.dispatch(options, this);
    } catch (error) {
      this.settle(reasonOf(error));
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.running = controller;
    this.fresh = this.call.connecting.fresh;
    if (this.settled) controller.abort(new DeadlinePassed());
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // What comes before the answer (100, 103) is none, but somebody is there.
    this.fresh = true;
    if (status < 200) return;
    this.status = status;
    this.retryAfter = textOf(headers['retry-after']);
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.size += chunk.length;
    if (this.size > readMost && this.status > 0) this.abandon(undefined);
  }

  onResponseEnd(): void {
    if (this.status > 0) this.settle(undefined);
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (!this.isStale(error)) {
      this.settle(reasonOf(error));
      return;
    }
    this.repeated = true;
    this.running = undefined;
    // When the dispatcher has done with the connection that ended.
    setImmediate(beginAgain, this);
  }

  /**
   * Whether the connection ended before a byte of an answer, and had carried one before: its other side closed it while
   * it was idle, as servers do, and has not read what crossed that on its way. Not an attempt: it goes out again, once.
   */
  private isStale(error: Error): boolean {
    const fresh = this.running ? this.fresh : this.call.connecting.fresh;
    if (fresh || this.repeated || !closed.test(codeOf(error))) return false;
    return performance.now() - this.startedAt < staleWithinMs;
  }

  /** Ends the wait, once; without a reason there was an answer. */
  settle(reason: NoAnswer | undefined): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    const { status, retryAfter } = this;
    const durationMs = Math.round(performance.now() - this.startedAt);
    if (reason) this.resolve({ kind: 'none', reason, durationMs });
    else this.resolve({ kind: 'answer', status, retryAfter, durationMs });
  }

  /** The same, and what still runs is cut off. */
  abandon(reason: NoAnswer | undefined): void {
    if (this.settled) return;
    this.settle(reason);
    this.running?.abort(new DeadlinePassed());
  }
}

const abandonLate = (exchange: Exchange): void => exchange.abandon('timeout');
const beginAgain = (exchange: Exchange): void => exchange.begin();

export type Call = {
  dispatcher: Dispatcher;
  options: Dispatcher.DispatchOptions;
  connecting: Connecting;
  deadlineMs: number;
};

/** Sends a request and answers what came of it within the deadline; never rejects. */
export const exchange = (call: Call): Promise<OutboundResult> =>
  new Promise((resolve) => new Exchange(call, resolve).begin());

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
  [/CERT|TLS|SSL|SELF_SIGNED|ALTNAME|EPROTO/, 'tls'],
];

/** Why there is no answer, of what undici, Node or our own rules threw. */
export const reasonOf = (error: unknown): NoAnswer => {
  const code = codeOf(error);
  return reasons.find(([pattern]) => pattern.test(code))?.[1] ?? 'reset';
};

class DeadlinePassed extends Error {
  readonly code = 'TIMEOUT';
}

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

/**
 * One request to its end, wherever it is at the deadline, and reading no more of the answer than is allowed. One object
 * that is the dispatcher's own handler: streams, signals, layers and closures cost more than the rest of the call.
 */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly startedAt = performance.now();
  private readonly timer: NodeJS.Timeout;
  private readonly resolve: (result: OutboundResult) => void;
  private running: Dispatcher.DispatchController | undefined;
  private status = 0;
  private retryAfter: string | undefined;
  private size = 0;
  private settled = false;

  constructor(resolve: (result: OutboundResult) => void, deadlineMs: number) {
    this.resolve = resolve;
    this.timer = setTimeout(abandonLate, deadlineMs, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.running = controller;
    if (this.settled) controller.abort(new DeadlinePassed());
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // What comes before the answer (100, 103) is none.
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
    this.settle(reasonOf(error));
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

/** Sends a request and answers what came of it within the deadline (ms); never rejects. */
export const exchange = (
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  deadlineMs: number,
): Promise<OutboundResult> =>
  new Promise((resolve) => {
    const running = new Exchange(resolve, deadlineMs);
    try {
      dispatcher.dispatch(options, running);
    } catch (error) {
      running.settle(reasonOf(error));
    }
  });

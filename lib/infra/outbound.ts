// Calls to addresses that customers gave us: one deadline over all, bounded answers, no redirects, no private hosts.
import { Agent, request } from 'undici';
import type { NoAnswer, OutboundResult } from '../kernel/outbound.ts';
import { type Allowed, createSafeLookup, isAllowed, requirePublic } from './addresses.ts';

export type Outbound = {
  /** Posts once; never throws. */
  post(url: string, headers: Record<string, string>, body: string): Promise<OutboundResult>;
  close(): Promise<void>;
};

const connectMs = 5_000;
/** More of an answer is not read: nobody's page fills our memory. */
const readMost = 64 * 1024;

const codeOf = (error: unknown): string => {
  const named = error as { code?: unknown; name?: unknown; cause?: unknown } | null;
  if (named?.code === 'BLOCKED_ADDRESS') return 'BLOCKED_ADDRESS';
  if (named?.cause) return codeOf(named.cause);
  // A deadline is a DOMException, whose code is a number that says nothing.
  return typeof named?.code === 'string' ? named.code : String(named?.name ?? '');
};

const reasons: [RegExp, NoAnswer][] = [
  [/BLOCKED_ADDRESS/, 'blocked_address'],
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

/** Reads what is allowed of a body, within the deadline of the call, and drops the rest. */
const drain = async (body: AsyncIterable<Buffer> & { destroy(): unknown }): Promise<void> => {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > readMost) break;
  }
  body.destroy();
};

const textOf = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value[0] : value;

/** `deadlineMs` bounds a whole call, the answer's body included. */
export const createOutbound = (options: {
  allowed: Allowed;
  deadlineMs: number;
  connectionsPerOrigin: number;
}): Outbound => {
  const { allowed, deadlineMs, connectionsPerOrigin } = options;
  const shared = { connections: connectionsPerOrigin, pipelining: 1, keepAliveTimeout: 10_000 };
  const lookup = createSafeLookup(allowed);
  const guarded = new Agent({ ...shared, connect: { timeout: connectMs, lookup } });
  const named = new Agent({ ...shared, connect: { timeout: connectMs } });

  const call = async (url: string, headers: Record<string, string>, body: string) => {
    const target = new URL(url);
    requirePublic(target, allowed);
    const answer = await request(target, {
      dispatcher: isAllowed(allowed, target) ? named : guarded,
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.timeout(deadlineMs),
    });
    await drain(answer.body as never);
    return { status: answer.statusCode, retryAfter: textOf(answer.headers['retry-after']) };
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

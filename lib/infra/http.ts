// Calls to providers: pooled connections, one deadline, bounded answers, and whether a failed call may have arrived.
import { Agent, request } from 'undici';

/** `date` is the answer's own header, if it has one. */
export type HttpAnswer = { status: number; text: string; date?: string };

/** `sent` is false only when the request certainly never left: then repeating it is safe. */
export class HttpFailure extends Error {
  readonly sent: boolean;

  constructor(sent: boolean, cause: unknown) {
    super(sent ? 'no answer' : 'no connection', { cause });
    this.name = 'HttpFailure';
    this.sent = sent;
  }
}

export type HttpRequest = {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  headers?: Record<string, string>;
  json?: unknown;
};

export type Http = {
  /** @throws HttpFailure when no complete answer came in time. */
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): Promise<void>;
};

// The connection was never made, so nothing can have been sent over it.
const neverLeft = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';

/** Throws for an answer over `maxBytes` or past `until`, so that no provider can fill the memory or drip for ever. */
const readText = async (
  body: AsyncIterable<Buffer>,
  { maxBytes, until }: { maxBytes: number; until: number },
): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) throw new Error('the answer is too large');
    if (performance.now() > until) throw new Error('the answer takes too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const maxAnswerBytes = 256 * 1024;

/** An HTTP client with at most `connections` connections per host; a call takes little more than `timeoutMs`. */
export const createHttp = (options: { timeoutMs: number; connections: number }): Http => {
  const { timeoutMs, connections } = options;
  const agent = new Agent({
    connections,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: { timeout: Math.min(timeoutMs, 3_000) },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  });

  const send = async ({ method, url, headers, json }: HttpRequest): Promise<HttpAnswer> => {
    const until = performance.now() + timeoutMs;
    try {
      const answer = await request(url, {
        dispatcher: agent,
        method,
        headers: {
          ...headers,
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: json === undefined ? null : JSON.stringify(json),
      });
      const text = await readText(answer.body, { maxBytes: maxAnswerBytes, until });
      const { date } = answer.headers;
      return { status: answer.statusCode, text, ...(typeof date === 'string' ? { date } : {}) };
    } catch (error) {
      throw new HttpFailure(!neverLeft.has(codeOf(error)), error);
    }
  };

  return { send, close: () => agent.destroy() };
};

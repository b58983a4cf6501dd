// Holds every answer of an API in this process against the OpenAPI document, whoever asked: clients of tests, bare
// calls, browsers, examples in processes of their own.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkAnswer } from './contract.ts';

type Started = { request: IncomingMessage; response: ServerResponse; server: Server };

/** Node's own news of a request that came in. */
const requestStarted = 'http.server.request.start';

// What was given to writeHead is no header that could be asked for: only an encoding that was set can be seen.
const isPlain = (response: ServerResponse): boolean =>
  response.getHeader('content-encoding') === undefined;

/** Calls `done` with the whole body once it went out. */
const whenSent = (response: ServerResponse, done: (text: string) => void): void => {
  const chunks: Buffer[] = [];
  const keep = (chunk: unknown): void => {
    if (chunk === undefined || chunk === null || typeof chunk === 'function') return;
    if (isPlain(response)) chunks.push(Buffer.from(chunk as string | Buffer));
  };
  const { write, end } = response;
  response.write = ((...given: Parameters<typeof write>) => {
    keep(given[0]);
    return write.apply(response, given);
  }) as typeof write;
  response.end = ((...given: Parameters<typeof end>) => {
    keep(given[0]);
    return end.apply(response, given);
  }) as typeof end;
  response.once('finish', () => done(Buffer.concat(chunks).toString()));
};

/** Watches the server on `port` until `stop`, which answers what was not as the document says. */
export const watchAnswers = (port: number): { stop(): string[] } => {
  const misfits: string[] = [];
  const look = (message: unknown): void => {
    const { request, response, server } = message as Started;
    if ((server.address() as AddressInfo | null)?.port !== port) return;
    const { method = '', url = '' } = request;
    whenSent(response, (text) => {
      try {
        checkAnswer(method, url, { status: response.statusCode }, text);
      } catch (error) {
        misfits.push((error as Error).message);
      }
    });
  };
  subscribe(requestStarted, look);
  return {
    stop: () => {
      unsubscribe(requestStarted, look);
      return misfits;
    },
  };
};

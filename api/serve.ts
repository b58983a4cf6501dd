// A web server around a Koa application: what Node refuses has the envelope too, and what is in flight may end.
import {
  createServer,
  type IncomingMessage,
  maxHeaderSize,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  errorCatalogue,
  type FieldIssue,
  fail,
  invalid,
  type ServiceError,
} from '../lib/kernel/errors.ts';
import { newId } from '../lib/kernel/ids.ts';
import type { Connections } from './connections.ts';
import { errorBody } from './envelope.ts';
import { commonHeaders } from './headers.ts';
import { listenWithSeveral } from './listen-sockets.ts';

export type Listening = {
  port: number;
  /** Takes no more connections, lets every request end with its answer, and resolves when all are closed. */
  close(): Promise<void>;
};

export type ServeOptions = {
  port: number;
  host: string;
  /** What is not answered this long after `close` (ms) is cut. */
  drainMs: number;
  /** How long a request may take to arrive with its body (ms). Default 15 s. */
  arrivalMs?: number;
  /** How long its headers alone may take (ms). Default: as long as the request. */
  headersMs?: number;
  connections: Connections;
};

/** Most of the time a process has to end; the rest is for what stands behind the listener. */
export const drainMsOf = ({ shutdownSeconds }: { shutdownSeconds: number }): number =>
  shutdownSeconds * 600;

// Above the longest answer, so that no proxy in front outlives us on a kept connection.
const keepAliveMs = 65_000;
const defaultArrivalMs = 15_000;
/** How often late requests are looked for, and while closing what has become idle. */
const sweepMs = 250;
/** How long a refused client may take to read its answer before its connection is cut. */
const lingerMs = 1_000;
const retrySeconds = 5;
/** An answer of which nothing was read for so long is broken off. Longer than any answer takes to begin. */
const unreadMs = 120_000;
/** Refused connections that are given that time; above it they are closed at once. */
const maxLingering = 100;

type Deadlines = { arrivalMs: number; headersMs: number };

const issueOf = (
  code: string | undefined,
  headersCame: boolean,
  { arrivalMs, headersMs }: Deadlines,
): FieldIssue => {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { field: 'headers', issue: `must be at most ${maxHeaderSize / 1024} KiB together` };
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return headersCame
      ? { field: 'body', issue: `must arrive within ${arrivalMs / 1000} seconds` }
      : { field: 'headers', issue: `must arrive within ${headersMs / 1000} seconds` };
  }
  return { field: 'request', issue: 'must be valid HTTP' };
};

const refusalText = (error: ServiceError): string => {
  const requestId = newId();
  const { status } = errorCatalogue[error.code];
  const body = errorBody(error, requestId);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(commonHeaders).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
    ...[`X-Request-Id: ${requestId}`, 'Content-Type: application/json; charset=utf-8'],
    `Content-Length: ${Buffer.byteLength(body)}`,
    `\r\n${body}`,
  ].join('\r\n');
};

type Answering = ReadonlyMap<Duplex, ServerResponse | undefined>;

/** Answers what never became a request. Node would send a bare status line. */
const createRefuse = (answering: Answering, deadlines: Deadlines) => {
  const refused = new WeakSet<Duplex>();
  let lingering = 0;
  const refuse = (socket: Duplex, error: ServiceError): void => {
    if (refused.has(socket)) return;
    refused.add(socket);
    if (lingering >= maxLingering) {
      socket.destroy();
      return;
    }
    lingering++;
    socket.once('close', () => lingering--);
    socket.end(refusalText(error));
    // Not at once: a reset could overtake the answer.
    setTimeout(() => socket.destroy(), lingerMs).unref();
  };
  return {
    refuse,
    isRefused: (socket: Duplex): boolean => refused.has(socket),
    onClientError: (error: NodeJS.ErrnoException, socket: Duplex): void => {
      const response = answering.get(socket);
      const inTheMiddle = response?.headersSent === true && !response.writableEnded;
      const silent = (socket as Socket).bytesRead === 0;
      if (!socket.writable || inTheMiddle || silent) socket.destroy();
      else {
        const headersCame = response !== undefined && !response.writableEnded;
        refuse(socket, invalid(issueOf(error.code, headersCame, deadlines)));
      }
    },
  };
};

/**
 * Tells `connections` when a request has arrived as a whole and when it is answered. A request that is answered before
 * its body came may still send the rest for a moment; then its connection is closed.
 */
const follow = (
  connections: Connections,
  request: IncomingMessage,
  response: ServerResponse,
): void => {
  const { socket } = request;
  let counted = false;
  let answered = false;
  const begin = (): void => {
    if (counted || answered) return;
    counted = true;
    connections.begin(socket);
  };
  const end = (): void => {
    if (counted) connections.end(socket);
    counted = false;
  };
  begin();
  // A body that came with its head is complete by then; every other request is a half-read one.
  setImmediate(() => {
    if (answered || request.complete) return;
    end();
    request.once('end', begin);
  });
  // From here on it waits for the client to read: that holds no connection against others.
  response.once('prefinish', end);
  response.once('close', () => {
    answered = true;
    end();
    if (request.complete) return;
    setTimeout(() => request.complete || socket.destroy(), lingerMs).unref();
  });
};

/**
 * Listens on a port; resolves when it does.
 * @throws Error when the port is taken
 */
export const serve = async (
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
  options: ServeOptions,
): Promise<Listening> => {
  const { port, host, drainMs, connections, arrivalMs = defaultArrivalMs } = options;
  const headersMs = Math.min(options.headersMs ?? arrivalMs, arrivalMs);
  /** Every connection, with its latest answer. */
  const answering = new Map<Duplex, ServerResponse | undefined>();
  let closing = false;
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (isRefused(request.socket) || !connections.queue(request.socket)) return;
    response.once('close', () => connections.unqueue(request.socket));
    answering.set(request.socket, response);
    if (closing) response.shouldKeepAlive = false;
    follow(connections, request, response);
    void handle(request, response);
  };
  const server = createServer(
    {
      ...{ keepAliveTimeout: keepAliveMs, connectionsCheckingInterval: sweepMs },
      ...{ requestTimeout: arrivalMs, headersTimeout: headersMs },
      // It is asked for where it can be missed in the envelope (context.ts).
      requireHostHeader: false,
    },
    onRequest,
  );
  server.setTimeout(unreadMs);
  const { refuse, isRefused, onClientError } = createRefuse(answering, { arrivalMs, headersMs });
  server.on('connection', (socket) => {
    if (!connections.admit(socket)) {
      refuse(socket, fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds }));
      return;
    }
    answering.set(socket, undefined);
    socket.once('close', () => answering.delete(socket));
  });
  server.on('clientError', onClientError);
  // An expectation that is not known may be passed over (RFC 9110 section 10.1.1); Node would say 417 by itself.
  server.on('checkExpectation', onRequest);
  server.on('connect', (_request, socket) => refuse(socket, fail('METHOD_NOT_ALLOWED')));

  const sweep = (): void => {
    server.closeIdleConnections();
    for (const [socket] of answering) if ((socket as Socket).bytesRead === 0) socket.destroy();
  };
  const close = async (): Promise<void> => {
    closing = true;
    for (const response of answering.values()) {
      if (response?.headersSent === false) response.shouldKeepAlive = false;
    }
    const closed = listening.close();
    const sweeping = setInterval(sweep, sweepMs);
    const cutting = setTimeout(() => server.closeAllConnections(), drainMs);
    await closed;
    clearInterval(sweeping);
    clearTimeout(cutting);
  };

  const listening = await listenWithSeveral(server, { port, host });
  return { port: listening.port, close };
};

// Small HTTP tools of the simulators: bodies, JSON answers and a table of routes.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A body that is too long or not what it says it is; `status` is what the caller gets. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type JsonObject = Record<string, unknown>;

/** Whether a value is a JSON object: no array, not null. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const maxBodyBytes = 1 << 20;

/** The whole request body. @throws Refusal 413 beyond 1 MiB, or when the caller went away. */
export const readBody = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBodyBytes) chunks.push(chunk);
    });
    request.on('end', () => {
      if (size > maxBodyBytes) return reject(new Refusal(413, 'The body is larger than 1 MiB.'));
      const [only] = chunks;
      return resolve(chunks.length === 1 && only ? only : Buffer.concat(chunks));
    });
    request.on('error', () => reject(new Refusal(400, 'The request was cut off.')));
    request.on('close', () => {
      if (!request.complete) reject(new Refusal(400, 'The request was cut off.'));
    });
  });

/** A JSON body; an empty one is an empty object. @throws Refusal 400 */
export const parseJsonObject = (body: Buffer): JsonObject => {
  if (body.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw new Refusal(400, 'The body is not JSON.');
  }
  if (!isObject(value)) throw new Refusal(400, 'The body must be a JSON object.');
  return value;
};

/** Query, form or JSON parameters in one object, as Graph, the Bot API and Turnstile take them. @throws Refusal 400 */
export const readParameters = (request: IncomingMessage, body: Buffer, query: URLSearchParams) => {
  const type = request.headers['content-type'] ?? '';
  const fromQuery: JsonObject = Object.fromEntries(query);
  if (body.length === 0) return fromQuery;
  if (type.startsWith('application/x-www-form-urlencoded')) {
    return { ...fromQuery, ...Object.fromEntries(new URLSearchParams(body.toString('utf8'))) };
  }
  if (type.startsWith('multipart/')) {
    throw new Refusal(400, 'Multipart bodies are not simulated; send JSON or a form.');
  }
  return { ...fromQuery, ...parseJsonObject(body) };
};

/** Answers JSON, unless the caller has gone or was answered already. */
export const sendJson = (
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void => {
  if (response.headersSent || response.destroyed) return;
  const text = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
};

export type RouteCall = {
  request: IncomingMessage;
  response: ServerResponse;
  params: Record<string, string>;
  query: URLSearchParams;
  body: JsonObject;
};

/** What a handler returns is answered as JSON; `answered` says it wrote the response itself. */
export const answered = Symbol('answered');

export type Route = {
  method: string;
  path: string;
  handle(call: RouteCall): unknown;
};

const decode = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Refusal(400, 'The path is not valid.');
  }
};

const matchPath = (pattern: string[], parts: string[]): Record<string, string> | undefined => {
  if (pattern.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const part = parts[index] ?? '';
    if (expected.startsWith(':')) params[expected.slice(1)] = decode(part);
    else if (expected !== part) return undefined;
  }
  return params;
};

/** Finds the route of a call. @throws Refusal 404 or 405 */
export const createRouter = (routes: Route[]) => {
  const table = routes.map((route) => ({ route, pattern: route.path.split('/') }));
  return {
    find: (method: string, path: string) => {
      const parts = path.split('/');
      const matches = table.flatMap(({ route, pattern }) => {
        const params = matchPath(pattern, parts);
        return params ? [{ route, params }] : [];
      });
      if (matches.length === 0) throw new Refusal(404, `There is nothing at ${path}.`);
      const match = matches.find(({ route }) => route.method === method);
      const allowed = matches.map(({ route }) => route.method).join(', ');
      if (!match) throw new Refusal(405, `${path} takes ${allowed}.`);
      return match;
    },
  };
};

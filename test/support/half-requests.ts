// Requests that are begun and not finished, from any address of the loopback network.
import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';

export type HalfRequest = {
  socket: Socket;
  /** Everything the server said so far. */
  said(): string;
  closed(): boolean;
};

/** What to write of a request; a body of `length` bytes is announced, and its first `bytes` are sent. */
export type Begun = {
  path: string;
  method?: string;
  headers?: Record<string, string>;
  length?: number;
  bytes?: number;
  from?: string;
};

/** Opens a connection from `from`, says nothing, and listens; resolves when it stands. It ends with the test. */
export const openSilent = async (
  t: ExecutionContext,
  url: string,
  from = '127.0.0.1',
): Promise<HalfRequest> => {
  const { port, hostname } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress: from });
  let said = '';
  let closed = false;
  socket.on('data', (data) => {
    said += String(data);
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  t.teardown(() => socket.destroy());
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, said: () => said, closed: () => closed };
};

/** The head of a request with the beginning of its body. */
export const beginRequest = async (
  t: ExecutionContext,
  url: string,
  { path, method = 'POST', headers = {}, length = 60_000, bytes = 1, from }: Begun,
): Promise<HalfRequest> => {
  const begun = await openSilent(t, url, from);
  const lines = Object.entries({
    Host: new URL(url).host,
    'Content-Type': 'application/json',
    'Content-Length': String(length),
    ...headers,
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  begun.socket.write(`${method} ${path} HTTP/1.1\r\n${head}\r\n${'{'.padEnd(bytes, ' ')}`);
  return begun;
};

// The connections of a listener: how many it holds, and which of them is closed at the limit.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import {
  type ConnectionLimits,
  type Connections,
  createConnections,
} from '../../api/connections.ts';
import { serve } from '../../api/serve.ts';
import { eventually } from '../support/stack.ts';

type Client = { socket: Socket; said(): string; closed(): boolean };

/** More than the system keeps for a client that does not read. */
const large = Buffer.alloc(64 * 1024 * 1024, 'x');

/** A server that answers `/held` when told to, trusts `/trusted`, and answers everything else at once. */
const start = async (t: ExecutionContext, limits: ConnectionLimits) => {
  const closed: string[] = [];
  const connections: Connections = createConnections(limits, (limit) => closed.push(limit));
  const waiting: ServerResponse[] = [];
  const asked: string[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request.url ?? '');
    if (request.url === '/trusted') connections.trust(request.socket);
    if (request.url === '/held') waiting.push(response);
    else response.end(request.url === '/large' ? large : 'done');
  };
  const door = await serve(handle, { port: 0, host: '127.0.0.1', drainMs: 100, connections });
  t.teardown(door.close);
  /** Opens a connection and writes `head`; resolves when the listener has taken it in, or refused it. */
  const open = async (head = '', localAddress = '127.0.0.1'): Promise<Client> => {
    const socket = connect({ port: door.port, host: '127.0.0.1', localAddress });
    let said = '';
    let ended = false;
    socket.on('data', (data) => {
      said += String(data);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      ended = true;
    });
    t.teardown(() => socket.destroy());
    await new Promise((resolve) => socket.once('connect', resolve));
    if (head !== '') socket.write(head);
    const client = { socket, said: () => said, closed: () => ended };
    if (head.endsWith('\r\n\r\n') && !head.includes('/held') && !head.includes('Content-Length')) {
      await eventually(t, () => (said !== '' || ended ? true : undefined));
    }
    return client;
  };
  return { open, waiting, asked, closed, connections };
};

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: here\r\n\r\n`;
const halfRead = 'POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 60000\r\n\r\nx';

const closedOf = (clients: readonly Client[]): boolean[] => clients.map(({ closed }) => closed());

test('at the limit the connection that has been idle for longest is closed for a new one', async (t) => {
  const { open, closed, connections } = await start(t, { max: 4, maxPerSource: undefined });
  const clients: Client[] = [];
  for (let n = 0; n < 4; n++) clients.push(await open(get('/')));
  // The first was idle for longest, until it asked again.
  clients[0]?.socket.write(get('/'));
  await eventually(t, () => (clients[0]?.said().match(/200 OK/g)?.length ?? 0) > 1 || undefined);
  const late = await open(get('/'));
  t.regex(late.said(), /^HTTP\/1.1 200/);
  await eventually(t, () => clients[1]?.closed() || undefined);
  t.deepEqual(closedOf(clients), [false, true, false, false]);
  t.deepEqual(closed, ['connections']);
  t.is(connections.size(), 4);
});

test('a half-read request counts as idle, one that is being answered does not', async (t) => {
  const { open, waiting } = await start(t, { max: 3, maxPerSource: undefined });
  const held = await open(get('/held'));
  await eventually(t, () => waiting[0]);
  const silent = await open();
  const half = await open(halfRead);
  for (let n = 0; n < 6; n++) t.regex((await open(get('/'))).said(), /^HTTP\/1.1 200/);
  t.deepEqual(closedOf([held, silent, half]), [false, true, true]);
  waiting[0]?.end('late');
  await eventually(t, () => held.said().includes('late') || undefined);
});

test('a connection whose caller showed a credential goes after those of strangers', async (t) => {
  const { open } = await start(t, { max: 3, maxPerSource: undefined });
  const trusted = await open(get('/trusted'));
  for (let n = 0; n < 6; n++) t.regex((await open(get('/'))).said(), /^HTTP\/1.1 200/);
  t.false(trusted.closed());
  for (let n = 0; n < 3; n++) await open(get('/trusted'));
  await eventually(t, () => trusted.closed() || undefined);
});

test('one address cannot take the connections of another', async (t) => {
  const { open, closed } = await start(t, { max: 100, maxPerSource: 3 });
  const other = await open(get('/'), '127.0.0.7');
  const clients: Client[] = [];
  for (let n = 0; n < 6; n++) clients.push(await open());
  await eventually(t, () => (closed.length === 3 ? true : undefined));
  await eventually(t, () => (closedOf(clients).filter(Boolean).length === 3 ? true : undefined));
  t.deepEqual(closedOf(clients), [true, true, true, false, false, false]);
  t.false(other.closed());
  t.deepEqual(closed, Array(3).fill('connections_of_address'));
});

test('a connection for which nothing can be closed is refused with 503', async (t) => {
  const { open, waiting, closed, connections } = await start(t, {
    max: 2,
    maxPerSource: undefined,
  });
  const held = [await open(get('/held')), await open(get('/held'))];
  await eventually(t, () => (waiting.length === 2 ? true : undefined));
  const late = await open(get('/'));
  t.regex(late.said(), /^HTTP\/1.1 503 .*"SERVICE_UNAVAILABLE"/s);
  t.deepEqual(closedOf(held), [false, false]);
  t.deepEqual(closed, ['connections']);
  for (const response of waiting) response.end('late');
  await eventually(t, () => (held.every(({ said }) => said().includes('late')) ? true : undefined));
  t.regex((await open(get('/'))).said(), /^HTTP\/1.1 200/);
  t.is(connections.size(), 2);
});

test('a connection whose request was answered before its body came is closed soon', async (t) => {
  const { open } = await start(t, { max: 10, maxPerSource: undefined });
  const half = await open(halfRead);
  await eventually(t, () => half.closed() || undefined, 10_000);
  t.regex(half.said(), /^HTTP\/1.1 200/);
  const slow = await open(halfRead.replace('60000', '2'));
  await eventually(t, () => slow.said() || undefined);
  slow.socket.write(`x${get('/')}`);
  await eventually(t, () => (slow.said().match(/200 OK/g)?.length ?? 0) === 2 || undefined);
});

test('a client that does not read its answer is closed for a new one', async (t) => {
  const { open, closed, asked } = await start(t, { max: 2, maxPerSource: undefined });
  const held = await open(get('/held'));
  await eventually(t, () => asked.includes('/held') || undefined);
  const slow = await open();
  slow.socket.pause();
  slow.socket.write(get('/large'));
  await eventually(t, () => asked.includes('/large') || undefined);
  for (let n = 0; n < 3; n++) t.regex((await open(get('/'))).said(), /^HTTP\/1.1 200/);
  slow.socket.resume();
  await eventually(t, () => slow.closed() || undefined);
  t.true(slow.said().length < large.length);
  t.false(held.closed());
  t.deepEqual(closed, Array(3).fill('connections'));
});

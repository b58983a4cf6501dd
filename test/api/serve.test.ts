// The server around the applications: how it ends, how long it waits, and what it says to what is no request.
import { Agent, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { type Listening, type ServeOptions, serve } from '../../api/serve.ts';
import { openConnections } from '../support/open-connections.ts';
import { eventually } from '../support/stack.ts';

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

const start = async (handle: Handle, options: Partial<ServeOptions> = {}): Promise<Listening> =>
  serve(handle, {
    port: 0,
    host: '127.0.0.1',
    drainMs: 5_000,
    connections: openConnections(),
    ...options,
  });

/** Answers only when told to. */
const held = () => {
  const waiting: ServerResponse[] = [];
  const handle: Handle = (_request, response) => waiting.push(response);
  return { handle, waiting, release: () => waiting.splice(0).map((each) => each.end('done')) };
};

const get = (port: number, agent: Agent) =>
  new Promise<{ connection: string | undefined; body: string }>((resolve, reject) => {
    const asked = ask({ port, host: '127.0.0.1', agent }, async (answer) => {
      resolve({ connection: answer.headers.connection, body: await text(answer) });
    });
    asked.on('error', reject);
    asked.end();
  });

const open = (t: ExecutionContext, port: number): Socket => {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  return socket;
};

const ended = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', resolve));

test('what is in flight when closing starts is answered, and told that the connection ends', async (t) => {
  const { handle, waiting, release } = held();
  const door = await start(handle);
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const answer = get(door.port, agent);
  await eventually(t, () => waiting[0]);
  const closed = door.close();
  release();
  t.deepEqual(await answer, { connection: 'close', body: 'done' });
  const before = Date.now();
  await closed;
  t.true(Date.now() - before < 1_000, 'a kept connection held the server open');
});

test('a connection that sends nothing, and one that is kept, do not hold the end up', async (t) => {
  const { handle, waiting, release } = held();
  const door = await start(handle);
  const silent = open(t, door.port);
  const kept = open(t, door.port);
  kept.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
  await eventually(t, () => waiting[0]);
  const first = new Promise<Buffer>((resolve) => kept.once('data', resolve));
  release();
  t.regex(String(await first), /keep-alive/i);
  await Promise.all([door.close(), ended(silent), ended(kept)]);
  t.pass();
});

test('what is never answered is cut when the time is over', async (t) => {
  const { handle, waiting } = held();
  const door = await start(handle, { drainMs: 300 });
  const socket = open(t, door.port);
  socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
  await eventually(t, () => waiting[0]);
  await Promise.all([door.close(), ended(socket)]);
  t.pass();
});

const errorOf = (answer: string) => {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const { error } = JSON.parse(body) as {
    error: { code: string; details: { field: string; issue: string }[]; request_id: string };
  };
  return { status: Number(head.split(' ')[1]), head, error };
};

const say = async (t: ExecutionContext, port: number, bytes: string) => {
  const socket = open(t, port);
  socket.write(bytes);
  return errorOf(String(await buffer(socket)));
};

test('a body that does not come in time is refused in the envelope', async (t) => {
  const door = await start((request) => request.resume(), { arrivalMs: 300 });
  t.teardown(door.close);
  const partial = 'POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n{';
  const { status, error } = await say(t, door.port, partial);
  t.is(status, 400);
  t.is(error.code, 'VALIDATION_ERROR');
  t.deepEqual(error.details, [{ field: 'body', issue: 'must arrive within 0.3 seconds' }]);
});

test('headers that do not come in time are refused in the envelope', async (t) => {
  const door = await start((request) => request.resume(), { headersMs: 300, arrivalMs: 60_000 });
  t.teardown(door.close);
  const { status, error } = await say(t, door.port, 'POST / HTTP/1.1\r\nHost: here\r\nX-Half');
  t.is(status, 400);
  t.deepEqual(error.details, [{ field: 'headers', issue: 'must arrive within 0.3 seconds' }]);
});

test('what Node refuses by itself has the envelope, too', async (t) => {
  const door = await start((request) => request.resume());
  t.teardown(door.close);
  const host = 'Host: here\r\n';
  const chunked = `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`;
  for (const [what, bytes, field] of [
    ['a method nobody knows', `BREW / HTTP/1.1\r\n${host}\r\n`, 'request'],
    ['a chunk without a length', `${chunked}zz\r\n`, 'request'],
    ['no HTTP', 'hello\r\n\r\n', 'request'],
    ['large headers', `GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(20_000)}\r\n\r\n`, 'headers'],
    [
      'two lengths',
      `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
      'request',
    ],
    [
      'a length beside chunks',
      `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      'request',
    ],
  ] as const) {
    const { status, head, error } = await say(t, door.port, bytes);
    t.is(status, 400, what);
    t.is(error.code, 'VALIDATION_ERROR', what);
    t.is(error.details[0]?.field, field, what);
    t.true(head.includes(`X-Request-Id: ${error.request_id}`), what);
    t.regex(head, /Content-Type: application\/json/, what);
    t.regex(head, /Content-Security-Policy: default-src 'none';/, what);
  }
  const tunnel = await say(t, door.port, `CONNECT here:443 HTTP/1.1\r\n${host}\r\n`);
  t.is(tunnel.error.code, 'METHOD_NOT_ALLOWED');
});

test('an answer that is under way is not written over', async (t) => {
  const door = await start((_request, response) => response.writeHead(200).write('half'));
  t.teardown(door.close);
  const socket = open(t, door.port);
  socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n');
  const first = new Promise<Buffer>((resolve) => socket.once('data', resolve));
  t.regex(String(await first), /^HTTP\/1.1 200/);
  socket.write('BREW / HTTP/1.1\r\n\r\n');
  const rest = String(await buffer(socket));
  t.notRegex(rest, /VALIDATION_ERROR/);
});

test('an expectation that nobody knows is passed over', async (t) => {
  const door = await start((_request, response) => response.end('fine'));
  t.teardown(door.close);
  const socket = open(t, door.port);
  socket.write('GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nExpect: tea\r\n\r\n');
  t.regex(String(await buffer(socket)), /^HTTP\/1.1 200 .*fine$/s);
});

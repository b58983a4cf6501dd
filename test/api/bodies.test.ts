// Bodies that strangers may send: what they can take of a process, and of each other.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type Bodies, createBodies } from '../../api/bodies.ts';
import { serve } from '../../api/serve.ts';
import { ServiceError } from '../../lib/kernel/errors.ts';
import { openConnections } from '../support/open-connections.ts';
import { eventually } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

const limit = 1_000_000;

/** So many bytes for all bodies of callers with a credential, and room for many bodies. */
const bounded = (bytes: number): Bodies =>
  createBodies({ bytes, atOnce: 100, perSource: 100 }, () => undefined);

/** A server that answers the length of each body, or the code of its refusal. */
const start = async (
  t: ExecutionContext,
  bodies: Bodies,
  use = (body: Buffer): Promise<string> => Promise.resolve(String(body.length)),
) => {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const trusted = request.headers['x-stranger'] === undefined;
      const source = () => String(request.headers['x-source'] ?? 'here');
      response.end(await bodies.read(request, { limit, trusted, source }, use));
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      response.end(`${error.code} ${error.extras.retry_after_seconds ?? ''}`);
    }
  };
  const door = await serve(handle, {
    port: 0,
    host: '127.0.0.1',
    drainMs: 100,
    connections: openConnections(),
  });
  t.teardown(door.close);
  return { port: door.port, url: `http://127.0.0.1:${door.port}` };
};

type Stalled = { socket: Socket; said(): string };

/** Sends so many bytes of a body of `limit`, and stops. */
const stall = (t: ExecutionContext, port: number, bytes: number, headers = ''): Stalled => {
  const socket = connect(port, '127.0.0.1');
  let said = '';
  socket.on('data', (data) => {
    said += String(data);
  });
  socket.on('error', () => undefined);
  socket.write(`POST / HTTP/1.1\r\nHost: here\r\nContent-Length: ${limit}\r\n${headers}\r\n`);
  socket.write(Buffer.alloc(bytes));
  t.teardown(() => socket.destroy());
  return { socket, said: () => said };
};

const post = (url: string, body: string | Buffer) =>
  sendRaw(url, { method: 'POST', path: '/', body });

test('above the budget the body that holds most gives way, and small ones go through', async (t) => {
  const { port, url } = await start(t, bounded(2_000_000));
  const large = [900_000, 910_000, 920_000, 930_000].map((bytes) => stall(t, port, bytes));
  const refused = () => large.filter(({ said }) => said().includes('SERVICE_UNAVAILABLE 5'));
  await eventually(t, () => (refused().length === 2 ? true : undefined));
  for (let call = 0; call < 20; call++) t.is((await post(url, 'x'.repeat(3_000))).body, '3000');
  t.is(refused().length, 2);
  // A whole body of the size of theirs is worth no more than they are: what holds most goes.
  t.is((await post(url, Buffer.alloc(500_000))).body, '500000');
  t.is(refused().length, 3);
});

test('a body counts until its use has ended, and not longer', async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { url } = await start(t, bounded(1_500_000), async (body) => {
    begin();
    await released;
    return String(body.length);
  });
  const first = post(url, Buffer.alloc(900_000));
  await begun;
  const second = await Promise.race([first, post(url, Buffer.alloc(900_001))]);
  t.is(second.body, 'SERVICE_UNAVAILABLE 5');
  release();
  t.is((await first).body, '900000');
  t.is((await post(url, Buffer.alloc(900_001))).body, '900001');
});

test('what breaks off, is too long, or was refused gives its bytes back', async (t) => {
  const { port, url } = await start(t, bounded(1_300_000));
  for (let round = 0; round < 3; round++) {
    const broken = stall(t, port, 900_000);
    await eventually(t, () => (broken.socket.bytesWritten > 900_000 ? true : undefined));
    broken.socket.destroy();
    t.is((await post(url, Buffer.alloc(limit + 1))).body, 'PAYLOAD_TOO_LARGE ');
    await eventually(t, async () =>
      (await post(url, Buffer.alloc(limit))).body === String(limit) ? true : undefined,
    );
  }
});

test('tiny pieces count for more than their bytes', async (t) => {
  const { url, port } = await start(t, bounded(100_000));
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  let said = '';
  socket.on('data', (data) => {
    said += String(data);
  });
  socket.write('POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n');
  socket.write('1\r\nx\r\n'.repeat(1_000));
  await eventually(t, () => (said.includes('SERVICE_UNAVAILABLE') ? true : undefined));
  t.is((await post(url, 'x'.repeat(3_000))).body, '3000');
});

const refusedOf = (calls: readonly Stalled[]): number =>
  calls.filter(({ said }) => said().includes('SERVICE_UNAVAILABLE 5')).length;

test('a small body that comes at once goes through beside bodies that fill the budget slowly', async (t) => {
  let now = 0;
  const refused: string[] = [];
  const bodies = createBodies(
    { bytes: 1_000_000, atOnce: 100, perSource: 100 },
    (at) => refused.push(at),
    () => now,
  );
  const { port, url } = await start(t, bodies);
  // Four fifths of a large call of a provider, which comes at once, and a smaller body that has lasted for ten seconds.
  const slow = stall(t, port, 300_000);
  await eventually(t, () => (slow.socket.bytesWritten > 300_000 ? true : undefined));
  await post(url, 'x');
  now = 10_000;
  t.is((await post(url, Buffer.alloc(800_000))).body, '800000');
  t.is(refusedOf([slow]), 1);
  t.deepEqual(refused, ['body_bytes']);
});

test('strangers have a quarter of the bytes, and cannot take those of callers with a credential', async (t) => {
  const { port, url } = await start(t, bounded(4_000_000));
  const entitled = stall(t, port, 900_000);
  await eventually(t, () => (entitled.socket.bytesWritten > 900_000 ? true : undefined));
  const strangers = Array.from({ length: 4 }, () => stall(t, port, 600_000, 'X-Stranger: 1\r\n'));
  await eventually(t, () => (refusedOf(strangers) === 3 ? true : undefined));
  t.is(refusedOf([entitled]), 0);
  t.is((await post(url, Buffer.alloc(500_000))).body, '500000');
});

test('of too many bodies that are waited for the oldest gives way, a stranger first', async (t) => {
  const refused: string[] = [];
  const bodies = createBodies({ bytes: 100_000_000, atOnce: 8, perSource: 2 }, (limit) =>
    refused.push(limit),
  );
  const { port, url } = await start(t, bodies);
  /** One byte of a body; resolves when it is waited for or was refused. */
  const wait = async (headers: string): Promise<Stalled> => {
    const call = stall(t, port, 1, headers);
    await eventually(t, () => (call.socket.bytesWritten > 1 ? true : undefined));
    // An answer to another call comes behind what arrived before it.
    await post(url, 'x');
    await post(url, 'x');
    return call;
  };
  const stranger = (source: string) => wait(`X-Stranger: 1\r\nX-Source: ${source}\r\n`);
  // Two of one address at most, and two strangers in all.
  const first = await stranger('a');
  const second = await stranger('a');
  const third = await stranger('a');
  await eventually(t, () => (refusedOf([first]) === 1 ? true : undefined));
  t.deepEqual(refused, ['bodies_of_address']);
  const fourth = await stranger('b');
  await eventually(t, () => (refusedOf([second]) === 1 ? true : undefined));
  t.deepEqual(refused.slice(1), ['bodies_of_strangers']);
  // Eight in all: what strangers wait for goes before what callers with a credential send.
  const entitled: Stalled[] = [];
  for (let n = 0; n < 8; n++) entitled.push(await wait(''));
  await eventually(t, () => (refusedOf([third, fourth]) === 2 ? true : undefined));
  t.is(refusedOf(entitled), 0);
  const ninth = await wait('');
  await eventually(t, () => (refusedOf(entitled) === 1 ? true : undefined));
  t.is(refusedOf(entitled.slice(0, 1)), 1);
  t.is(refusedOf([ninth]), 0);
  t.deepEqual(refused.slice(2), ['bodies', 'bodies', 'bodies']);
  // A body that comes with its head waits for nobody, and takes no place.
  for (let n = 0; n < 20; n++) t.is((await post(url, 'x'.repeat(100))).body, '100');
  t.is(refused.length, 5);
});

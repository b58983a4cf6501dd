// Bodies that strangers may send: what they can take of a process, and of each other.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createRawBodies, type RawBodies } from '../../api/raw-bodies.ts';
import { serve } from '../../api/serve.ts';
import { ServiceError } from '../../lib/kernel/errors.ts';
import { eventually } from '../support/stack.ts';
import { sendRaw } from '../support/wire.ts';

const limit = 1_000_000;

/** A server that answers the length of each body, or the code of its refusal. */
const start = async (
  t: ExecutionContext,
  bodies: RawBodies,
  use = (body: Buffer): Promise<string> => Promise.resolve(String(body.length)),
) => {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      response.end(await bodies.read(request, limit, use));
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      response.end(`${error.code} ${error.extras.retry_after_seconds ?? ''}`);
    }
  };
  const door = await serve(handle, { port: 0, host: '127.0.0.1', drainMs: 100 });
  t.teardown(door.close);
  return { port: door.port, url: `http://127.0.0.1:${door.port}` };
};

type Stalled = { socket: Socket; said(): string };

/** Sends so many bytes of a body of `limit`, and stops. */
const stall = (t: ExecutionContext, port: number, bytes: number): Stalled => {
  const socket = connect(port, '127.0.0.1');
  let said = '';
  socket.on('data', (data) => {
    said += String(data);
  });
  socket.on('error', () => undefined);
  socket.write(`POST / HTTP/1.1\r\nHost: here\r\nContent-Length: ${limit}\r\n\r\n`);
  socket.write(Buffer.alloc(bytes));
  t.teardown(() => socket.destroy());
  return { socket, said: () => said };
};

const post = (url: string, body: string | Buffer) =>
  sendRaw(url, { method: 'POST', path: '/', body });

test('above the budget the body that holds most gives way, and small ones go through', async (t) => {
  const { port, url } = await start(t, createRawBodies(2_000_000));
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
  const { url } = await start(t, createRawBodies(1_500_000), async (body) => {
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
  const { port, url } = await start(t, createRawBodies(1_300_000));
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
  const { url, port } = await start(t, createRawBodies(100_000));
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

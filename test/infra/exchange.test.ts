// One call: a connection that was closed while it was idle is no attempt, any other end is; and reasons by their codes.
import { once } from 'node:events';
import net from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { reasonOf } from '../../lib/infra/exchange.ts';
import { createOutbound } from '../../lib/infra/outbound.ts';

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** Two calls with a pause between them; `second` answers what comes after the first on a connection. */
const twice = async (
  t: ExecutionContext,
  second: (socket: net.Socket) => unknown,
  first: (socket: net.Socket, connection: number) => unknown = (socket) => socket.write(ok),
) => {
  const connections: number[] = [];
  const server = net.createServer((socket) => {
    const at = connections.push(0) - 1;
    socket.on('error', () => undefined);
    socket.on('data', () => {
      const call = (connections[at] ?? 0) + 1;
      connections[at] = call;
      if (call === 1) first(socket, at);
      else second(socket);
    });
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  const outbound = createOutbound({
    rules: { open: new Map([['127.0.0.1', '*']]) },
    deadlineMs: 3_000,
  });
  t.teardown(() => outbound.close());
  const url = `http://127.0.0.1:${port}/`;
  const post = () => outbound.post({ accountId: '', url, headers: {}, body: '{}' });
  await post();
  // Its connection is idle when the dispatcher has come to rest.
  await new Promise((resolve) => setTimeout(resolve, 20));
  const result = await post();
  return { result, connections };
};

const ends: Record<string, (socket: net.Socket) => unknown> = {
  closed: (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
};

for (const [name, end] of Object.entries(ends)) {
  test(`an idle connection that is ${name} as it is used again is replaced at once`, async (t) => {
    const { result, connections } = await twice(t, end);
    t.like(result, { kind: 'answer', status: 200 });
    t.deepEqual(connections, [2, 1]);
  });

  test(`a fresh connection that is ${name} is an attempt that failed`, async (t) => {
    const { result, connections } = await twice(t, end, (socket, connection) =>
      connection === 0 ? socket.end(ok.replace('\r\n', '\r\nconnection: close\r\n')) : end(socket),
    );
    t.like(result, { kind: 'none', reason: 'reset' });
    t.deepEqual(connections, [1, 1]);
  });
}

test('it is replaced once', async (t) => {
  const { result, connections } = await twice(
    t,
    (socket) => socket.end(),
    (socket, connection) => (connection === 0 ? socket.write(ok) : socket.end()),
  );
  t.like(result, { kind: 'none', reason: 'reset' });
  t.deepEqual(connections, [2, 1]);
});

test('where somebody was at work on it, that was the attempt', async (t) => {
  const hinting = await twice(t, (socket) => socket.end('HTTP/1.1 103 Early Hints\r\n\r\n'));
  t.like(hinting, { result: { kind: 'none', reason: 'reset' }, connections: [2] });
  const late = await twice(t, (socket) => setTimeout(() => socket.end(), 1_050));
  t.like(late, { result: { kind: 'none', reason: 'reset' }, connections: [2] });
});

test('what is wrong with a certificate is told as that', (t) => {
  const codes = [
    ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'CERT_HAS_EXPIRED'],
    ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CRL_HAS_EXPIRED', 'EPROTO'],
    ...['HOSTNAME_MISMATCH', 'INVALID_CA', 'ERR_SSL_WRONG_VERSION_NUMBER'],
  ];
  for (const code of codes) t.is(reasonOf(Object.assign(new Error('x'), { code })), 'tls', code);
  t.is(reasonOf(Object.assign(new Error('x'), { code: 'ECONNRESET' })), 'reset');
});

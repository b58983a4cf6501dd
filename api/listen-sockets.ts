// Several listening sockets on one port: a process takes one connection from each per turn of its event loop.
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/**
 * libuv accepts one connection per listening socket and turn (since 1.45). With a single socket a busy process takes a
 * few hundred connections a second, and a burst of strangers keeps everybody else waiting in the kernel for seconds.
 */
const sockets = 8;
/** Connections that the kernel keeps for each socket until the process takes them (net.core.somaxconn bounds it). */
const backlog = 512;

type Place = { port: number; host: string };

const listenOn = (server: Server, place: Place & { reusePort: boolean }): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ ...place, backlog }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
  });

/**
 * Sockets that share a port (SO_REUSEPORT) would share it with another process of the same user without a word, so the
 * port is first taken alone, which fails when somebody has it.
 */
const claim = async (place: Place): Promise<number> => {
  const alone = createServer();
  const port = await listenOn(alone, { ...place, reusePort: false });
  await close(alone);
  return port;
};

/**
 * Lets `server` listen on a port with several sockets. Port 0 takes a free one.
 * `close` ends listening, and resolves when every connection has ended.
 * @throws Error when the port is taken
 */
export const listenWithSeveral = async (
  server: Server,
  { port: wanted, host }: Place,
): Promise<{ port: number; close(): Promise<void> }> => {
  const port = await claim({ port: wanted, host });
  const pass = (socket: Socket): void => {
    server.emit('connection', socket);
  };
  const others = Array.from({ length: sockets - 1 }, () =>
    // As Node's own HTTP server opens its connections.
    createServer({ allowHalfOpen: true, noDelay: true }, pass),
  );
  const listeners = [server, ...others];
  for (const listener of listeners) await listenOn(listener, { port, host, reusePort: true });
  return {
    port,
    close: async () => {
      await Promise.all(listeners.map(close));
    },
  };
};

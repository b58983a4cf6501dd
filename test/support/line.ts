// A line to an engine that a test can cut and mend: what an outage looks like from the product's side.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Line = {
  /** `url` with the proxy's address in place of the engine's. */
  through(url: string): string;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  /** Keeps every connection, and new ones, and lets nothing through. */
  hang(): void;
  mend(): void;
  close(): Promise<void>;
};

/** A proxy to the host and port of `target`. */
export const createLine = async (target: string): Promise<Line> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const pairs = new Set<readonly [Socket, Socket]>();
  let isCut = false;
  let hangs = false;

  const join = ([client, engine]: readonly [Socket, Socket]): void => {
    client.pipe(engine).pipe(client);
  };

  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const engine = connect(Number(port), hostname);
    const pair = [client, engine] as const;
    pairs.add(pair);
    for (const socket of [client, engine]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        pairs.delete(pair);
        client.destroy();
        engine.destroy();
      });
    }
    if (!hangs) join(pair);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };

  return {
    through: (url) => {
      const through = new URL(url);
      through.hostname = '127.0.0.1';
      through.port = String((server.address() as AddressInfo).port);
      return through.href;
    },
    cut: () => {
      isCut = true;
      destroyAll();
    },
    hang: () => {
      hangs = true;
      for (const [client, engine] of pairs) {
        client.unpipe(engine);
        engine.unpipe(client);
      }
    },
    mend: () => {
      isCut = false;
      if (hangs) for (const pair of pairs) join(pair);
      hangs = false;
    },
    close: async () => {
      destroyAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

// A line to an engine that a test can cut and mend: what an outage looks like from the product's side.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Line = {
  /** `url` with the proxy's address in place of the engine's. */
  through(url: string): string;
  /** Ends every connection and refuses new ones. */
  cut(): void;
  mend(): void;
  close(): Promise<void>;
};

/** A proxy to the host and port of `target`. */
export const createLine = async (target: string): Promise<Line> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;

  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const engine = connect(Number(port), hostname);
    for (const socket of [client, engine]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        engine.destroy();
      });
    }
    client.pipe(engine).pipe(client);
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
    mend: () => {
      isCut = false;
    },
    close: async () => {
      destroyAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

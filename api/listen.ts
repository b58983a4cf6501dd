// Serves the API on a port, and ends without dropping what is in flight.
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ApiApp } from '../lib/app.ts';
import { routes, serveDocs } from './routes.ts';
import { createServer } from './server.ts';

export type Listening = { port: number; close(): Promise<void> };

// Above the longest answer, so that no proxy in front outlives us on a kept connection.
const keepAliveMs = 65_000;

/** Listens on the port and address of the settings; resolves when it does, throws when it cannot. */
export const listen = async (app: ApiApp): Promise<Listening> => {
  const server = createHttpServer(createServer(app, routes, serveDocs).callback());
  server.keepAliveTimeout = keepAliveMs;
  server.requestTimeout = keepAliveMs;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(app.config.port, app.config.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
};

// Serves the ops listener on its own port.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OpsApp } from '../../lib/ops-app.ts';
import { opsRoutes } from './routes.ts';
import { createOpsServer } from './server.ts';

export type OpsListening = { port: number; close(): Promise<void> };

/** Listens on OPS_HOST and OPS_PORT. @throws Error without a token, or when the port is taken */
export const listenOps = async (app: OpsApp): Promise<OpsListening> => {
  if (app.config.opsToken === '') throw new Error('OPS_TOKEN is not set');
  const server = createServer(createOpsServer(app, opsRoutes).callback());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(app.config.opsPort, app.config.opsHost, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

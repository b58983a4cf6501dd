// Serves the ops listener on its own port.
import type { OpsApp } from '../../lib/ops-app.ts';
import { createIntake } from '../intake.ts';
import { drainMsOf, type Listening, serve } from '../serve.ts';
import { opsRoutes } from './routes.ts';
import { createOpsServer } from './server.ts';

/** Listens on OPS_HOST and OPS_PORT. @throws Error without a token, or when the port is taken */
export const listenOps = async (app: OpsApp): Promise<Listening> => {
  const { opsToken, opsPort: port, opsHost: host, requestTimeoutMs, headersTimeoutMs } = app.config;
  if (opsToken === '') throw new Error('OPS_TOKEN is not set');
  const { bodies, connections } = createIntake(app.config, app.metrics, app.log);
  const koa = createOpsServer(app, opsRoutes, bodies, connections.trust);
  return serve(koa.callback(), {
    port,
    host,
    drainMs: drainMsOf(app.config),
    arrivalMs: requestTimeoutMs,
    headersMs: headersTimeoutMs,
    connections,
  });
};

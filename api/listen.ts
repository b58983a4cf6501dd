// Serves the API on its port.
import type { ApiApp } from '../lib/app.ts';
import { createDoor } from './door.ts';
import { createIntake } from './intake.ts';
import { routes, serveDocs } from './routes.ts';
import { drainMsOf, type Listening, serve } from './serve.ts';
import { createServer } from './server.ts';

export type { Listening };

/** Listens on HOST and PORT; resolves when it does, throws when it cannot. */
export const listen = (app: ApiApp): Promise<Listening> => {
  const { port, host, requestTimeoutMs, headersTimeoutMs } = app.config;
  const { bodies, connections } = createIntake(app.config, app.metrics, app.log);
  const koa = createServer(app, { routes, serveDocs, bodies, trust: connections.trust });
  return serve(createDoor(app, routes, koa.callback()), {
    port,
    host,
    drainMs: drainMsOf(app.config),
    arrivalMs: requestTimeoutMs,
    headersMs: headersTimeoutMs,
    connections,
  });
};

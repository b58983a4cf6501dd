// The table of contents of the ops listener.
import type { OpsRoute } from './route.ts';
import { overviewRoutes } from './routes/overview.ts';
import { probeRoutes } from './routes/probes.ts';

export const opsRoutes: readonly OpsRoute[] = [...overviewRoutes, ...probeRoutes];

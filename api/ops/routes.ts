// The table of contents of the ops listener.
import type { OpsRoute } from './route.ts';
import { auditRoutes } from './routes/audit.ts';
import { deadRoutes } from './routes/dead.ts';
import { overviewRoutes } from './routes/overview.ts';
import { probeRoutes } from './routes/probes.ts';
import { queueRoutes } from './routes/queues.ts';

export const opsRoutes: readonly OpsRoute[] = [
  ...overviewRoutes,
  ...queueRoutes,
  ...deadRoutes,
  ...auditRoutes,
  ...probeRoutes,
];

// The table of contents of the ops listener.
import { consoleRoutes } from './console/routes.ts';
import type { OpsRoute } from './route.ts';
import { accountRoutes } from './routes/accounts.ts';
import { auditRoutes } from './routes/audit.ts';
import { channelRoutes } from './routes/channels.ts';
import { deadRoutes } from './routes/dead.ts';
import { messageRoutes } from './routes/messages.ts';
import { overviewRoutes } from './routes/overview.ts';
import { paymentRoutes } from './routes/payments.ts';
import { platformRoutes } from './routes/platform.ts';
import { probeRoutes } from './routes/probes.ts';
import { queueRoutes } from './routes/queues.ts';

export const opsRoutes: readonly OpsRoute[] = [
  ...overviewRoutes,
  ...queueRoutes,
  ...deadRoutes,
  ...channelRoutes,
  ...accountRoutes,
  ...paymentRoutes,
  ...platformRoutes,
  ...messageRoutes,
  ...auditRoutes,
  ...probeRoutes,
  ...consoleRoutes,
];

// The table of contents of the ops listener.
import type { OpsRoute } from './route.ts';
import { overviewRoutes } from './routes/overview.ts';

export const opsRoutes: readonly OpsRoute[] = [...overviewRoutes];

// The table of contents: every route of the public API, in the order of the spec.
import { openApiDocument } from './openapi.ts';
import type { Route } from './route.ts';
import { accessRoutes } from './routes/access.ts';
import { accountRoutes } from './routes/account.ts';
import { billingRoutes } from './routes/billing.ts';
import { capacityRoutes } from './routes/capacity.ts';
import { healthRoutes } from './routes/health.ts';
import { inboundRoutes } from './routes/inbound.ts';
import { keyRoutes } from './routes/keys.ts';
import { limitRoutes } from './routes/limits.ts';
import { createServeDocs, metaRoutes } from './routes/meta.ts';
import { otpRoutes } from './routes/otp.ts';
import { playgroundRoutes } from './routes/playground.ts';
import { reportRoutes } from './routes/reports.ts';
import { securityRoutes } from './routes/security.ts';
import { totpRoutes } from './routes/totp.ts';
import { wabaRoutes } from './routes/waba.ts';
import { webhookRoutes } from './routes/webhooks.ts';

const document = () => openApiDocument(routes);

/** What hangs below /docs. */
export const serveDocs = createServeDocs(document);

export const routes: readonly Route[] = [
  ...healthRoutes,
  ...otpRoutes,
  ...totpRoutes,
  ...playgroundRoutes,
  ...accessRoutes,
  ...accountRoutes,
  ...keyRoutes,
  ...reportRoutes,
  ...limitRoutes,
  ...capacityRoutes,
  ...billingRoutes,
  ...webhookRoutes,
  ...securityRoutes,
  ...wabaRoutes,
  ...inboundRoutes,
  ...metaRoutes(document, serveDocs),
];

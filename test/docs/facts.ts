// The documentation of a service with the settings of tests, without a server.
import { composePages } from '../../api/docs/compose.ts';
import type { Facts, Page } from '../../api/docs/page.ts';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';

export const facts: Facts = {
  openapi: JSON.parse(JSON.stringify(openApiDocument(routes))) as Record<string, unknown>,
  ...{ version: '0.0.0', playground: 'sandbox', turnstileSiteKey: '' },
  ...{ turnstileBaseUrl: 'https://challenges.example', trialVerifications: 50 },
  sharedGrant: { unverified: 10, perVerified: 5 },
  exposure: { trialMicros: 2_000_000, paidMicros: 10_000_000, timesCharged: 3 },
  ...{ priceMicros: 50_000, sharedHourly: 18_000, floorMinimumDaily: 20 },
};

export const pages: Page[] = composePages(facts);

/** The Markdown of the page at `path`. */
export const markdownAt = (path: string): string =>
  pages.find((page) => page.path === path)?.markdown ?? '';

/** Of the pages that are generated, those with the most in them; site.test.ts shows that the others hold nothing else. */
const fullest = [
  ...['errors/RATE_LIMIT_EXCEEDED', 'errors/NOT_FOUND', 'api/post-otp-send'],
  ...['api/get-clients-limits', 'api/get-clients-otps-export', 'api/post-inbound-whatsapp'],
];

/** What the browser visits: all pages that were written by hand, and the fullest of the others. */
export const visited: Page[] = pages.filter(
  ({ path, section }) => section !== undefined || fullest.includes(path),
);

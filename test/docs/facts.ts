// The documentation of a service with the settings of tests, without a server.
import { composePages } from '../../api/docs/compose.ts';
import type { Facts, Page } from '../../api/docs/page.ts';
import { openApiDocument } from '../../api/openapi.ts';
import { routes } from '../../api/routes.ts';

export const facts: Facts = {
  openapi: JSON.parse(JSON.stringify(openApiDocument(routes))) as Record<string, unknown>,
  ...{ version: '0.0.0', playground: 'sandbox', turnstileSiteKey: '' },
  ...{ turnstileBaseUrl: 'https://challenges.example', trialVerifications: 50 },
  ...{ priceMicros: 50_000, sharedHourly: 18_000, floorMinimumDaily: 20 },
};

export const pages: Page[] = composePages(facts);

/** The Markdown of the page at `path`. */
export const markdownAt = (path: string): string =>
  pages.find((page) => page.path === path)?.markdown ?? '';

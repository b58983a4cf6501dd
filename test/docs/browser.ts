// A browser for tests of the pages: notes what must not happen while they are read.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export type Reader = {
  page: Page;
  /** Errors of the console, exceptions, and requests that left the host or failed. */
  complaints: string[];
  /** Bytes over the wire since the last look. */
  bytes(): number;
  close(): Promise<void>;
};

/** A reader of the pages at `origin`. */
export const openReader = async (
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
): Promise<Reader> => {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  let bytes = 0;
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin)) complaints.push(`left the host: ${request.url()}`);
  });
  page.on('response', (response) => {
    bytes += Number(response.headers()['content-length'] ?? 0);
  });
  return {
    page,
    complaints,
    bytes: () => {
      const seen = bytes;
      bytes = 0;
      return seen;
    },
    close: () => context.close(),
  };
};

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);

type Violation = { id: string; impact: string | null; nodes: { html: string }[] };

/** What axe finds that is serious or worse. */
export const seriousFindings = async (page: Page): Promise<string[]> => {
  await page.evaluate(axeSource);
  const violations = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)",
  )) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`);
};

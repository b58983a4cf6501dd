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

/** What axe finds that is serious or worse; only by `rules` when there are some. */
export const seriousFindings = async (
  page: Page,
  rules: readonly string[] = [],
): Promise<string[]> => {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axeSource);
  const options = { resultTypes: ['violations'], ...(rules.length > 0 ? { runOnly: rules } : {}) };
  const violations = (await page.evaluate(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`,
  )) as Violation[];
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`);
};

/** Light, dark and on a phone: what is wrong with the page that is open. */
export const flawsOf = async (page: Page): Promise<string[]> => {
  const light = await seriousFindings(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  // The colours are all that is another.
  const dark = await seriousFindings(page, ['color-contrast']);
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 720 });
  return [...light, ...dark, ...(wide ? ['wider than a phone'] : [])];
};

// Runs in the page: the addresses found for some words, once the search has looked.
const searching = `async (words) => {
  const list = document.querySelector('dialog ul');
  const status = document.querySelector('dialog [role=status]');
  const input = document.querySelector('dialog input');
  list.replaceChildren();
  status.textContent = '';
  input.value = words;
  input.dispatchEvent(new Event('input'));
  while (status.textContent === '') await new Promise((resolve) => setTimeout(resolve, 5));
  return [...list.querySelectorAll('a')].map((link) => link.getAttribute('href'));
}`;

/** Where the open search leads for these words, best first. */
export const searchFor = (page: Page, words: string): Promise<string[]> =>
  page.evaluate(`(${searching})(${JSON.stringify(words)})`);

/** A widget like Turnstile's: it fills the field of its place, and another time when it is reset. */
export const turnstileScript = `(() => {
  let count = 0;
  const place = document.querySelector('.cf-turnstile');
  const field = Object.assign(document.createElement('input'), { type: 'hidden', name: 'cf-turnstile-response' });
  // Cloudflare's script looks for its own element: a module has none.
  if (!document.currentScript) throw new Error('no script of its own');
  const reset = () => { count += 1; field.value = 'token ' + count + ' of ' + place.dataset.sitekey; };
  place.append(field);
  reset();
  window.turnstile = { reset };
})()`;

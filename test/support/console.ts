// The console of a stack in a browser: logged in, with whatever it complains about kept.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { openBrowser } from './browser.ts';
import { type Ops, startOps } from './ops.ts';
import { opsToken } from './settings.ts';
import { type Customer, type Stack, type StackOptions, startStack } from './stack.ts';

export type Console = {
  stack: Stack;
  ops: Ops;
  customer: Customer;
  context: BrowserContext;
  /** Opens a page of it. */
  open(path: string): Promise<Page>;
  /** Errors of scripts and calls to anywhere else, from all pages. */
  troubles: string[];
  close(): Promise<void>;
};

/** Every page that is always there. */
export const consolePaths = [
  ...['/ops', '/ops/queues', '/ops/queues/whatsapp.send', '/ops/dead', '/ops/dead/whatsapp.send'],
  ...['/ops/channels', '/ops/messages', '/ops/accounts', '/ops/capacity', '/ops/payments'],
  ...['/ops/switches', '/ops/processes', '/ops/audit'],
] as const;

/** Fills the login form of the page that shows it. */
export const logIn = async (page: Page, actor = 'Tester'): Promise<void> => {
  await page.fill('input[name=actor]', actor);
  await page.fill('input[name=token]', opsToken);
  await page.click('button');
  await page.waitForSelector('#page');
};

/** Starts it all. @throws Error without a browser */
export const startConsole = async (name: string, options: StackOptions = {}): Promise<Console> => {
  const stack = await startStack(name, options);
  const customer = await stack.customer();
  const ops = await startOps(stack);
  const browser: Browser = await openBrowser();
  const context = await browser.newContext({ viewport: { width: 1_200, height: 900 } });
  const troubles: string[] = [];
  const open: Console['open'] = async (path) => {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.on('pageerror', (error) => troubles.push(`${path}: ${error.message}`));
    page.on('request', (request) => {
      const { origin } = new URL(request.url());
      if (origin !== ops.url && !request.url().startsWith('data:')) troubles.push(request.url());
    });
    await page.goto(ops.url + path, { waitUntil: 'load' });
    return page;
  };
  const first = await open('/ops');
  await logIn(first);
  await first.close();
  return {
    ...{ stack, ops, customer, context, open, troubles },
    close: async () => {
      await browser.close();
      await ops.close();
      await stack.close();
    },
  };
};

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Finding = { id: string; impact: string; nodes: { html: string }[] };

/** What axe calls serious or worse; only by `rules`, when some are named. */
export const findings = async (page: Page, rules?: string[]): Promise<string[]> => {
  await page.evaluate(axe);
  const options = rules ? `{ runOnly: ${JSON.stringify(rules)} }` : '{}';
  const run = `axe.run(document, ${options})`;
  const { violations } = (await page.evaluate(run)) as { violations: Finding[] };
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
};

/** By how many pixels the page is wider than its window. */
export const overflowOf = async (page: Page): Promise<number> =>
  Number(await page.evaluate('document.documentElement.scrollWidth - window.innerWidth'));

// The documentation as a visitor meets it, in headless Chromium.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import type { Browser } from 'playwright-core';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import { browserPath, openBrowser } from '../support/browser.ts';
import { type Stack, startStack } from '../support/stack.ts';
import { openReader, type Reader, seriousFindings } from './browser.ts';
import { pages } from './facts.ts';

let stack: Stack;
let browser: Browser;
const testing = browserPath() ? test : test.skip;

// Errors of a browser or an engine may hold on to all of it, and a report of the failure walks what an error holds.
const plainly = (error: unknown): never => {
  throw new Error(error instanceof Error ? error.message : String(error));
};

test.before(async () => {
  if (!browserPath()) return;
  [stack, browser] = await Promise.all([startStack('docs_browser'), openBrowser()]).catch(plainly);
  await fetch(`${stack.url}/docs`);
});
test.after.always(async () => {
  await browser?.close();
  await stack?.close();
});

const reading = async (
  options: Parameters<typeof openReader>[2],
  work: (reader: Reader) => Promise<void>,
): Promise<void> => {
  const reader = await openReader(browser, stack.url, options);
  try {
    await work(reader).catch(plainly);
  } finally {
    await reader.close();
  }
};

const urlOf = (path: string): string => (path === '' ? '/docs' : `/docs/${path}`);

/** All that were written by hand, and every third of the generated ones, which are alike; site.test.ts has them all. */
const read = pages.filter(({ section }, index) => section !== undefined || index % 3 === 0);

/** One of each kind of page, and those with the most in them. */
const kinds = [
  ...['/docs', '/docs/quickstart', '/docs/playground', '/docs/limits', '/docs/webhooks'],
  ...['/docs/settings', '/docs/errors', '/docs/errors/RATE_LIMIT_EXCEEDED', '/docs/api'],
  ...['/docs/api/post-otp-send', '/docs/api/get-clients-limits', '/docs/nothing'],
];

testing('the quickstart, pasted as it is, ends in a verified code', async (t) => {
  await reading({}, async ({ page, complaints }) => {
    await page.goto(`${stack.url}/docs/quickstart`);
    const blocks = await page.locator('.code-sh code').allTextContents();
    t.is(blocks[0], 'npm start', 'the stack of this test is up already');
    const script = blocks.slice(1).join('\n\n');
    const { stdout } = await promisify(execFile)('sh', ['-ec', script], { timeout: 60_000 });
    const answers = stdout.trim().replaceAll('}{', '}\n{').split('\n');
    t.regex(answers.at(-2) ?? '', /"status":"sent"/, stdout);
    t.is(answers.at(-1), '{"data":{"verified":true}}', stdout);
    t.deepEqual(complaints, []);
  });
});

testing('pages load in their budget, without an error, and nothing leaves the host', async (t) => {
  await reading({}, async ({ page, complaints, bytes }) => {
    let most = 0;
    for (const { path, title } of read) {
      const answer = await page.goto(stack.url + urlOf(path), { waitUntil: 'load' });
      t.is(answer?.status(), 200, path);
      t.is((await page.locator('h1').textContent()) ?? '', title);
      most = Math.max(most, bytes());
    }
    t.log(`most on one page: ${most} bytes`);
    t.true(most > 1_000 && most < 200_000);
    t.deepEqual(complaints, []);
  });
});

testing('the search finds each error code first, and any other page by its words', async (t) => {
  await reading({}, async ({ page, complaints }) => {
    await page.goto(`${stack.url}/docs`);
    await page.keyboard.press('/');
    const input = page.getByRole('searchbox');
    const first = page.locator('dialog li a').first();
    for (const code of Object.keys(errorCatalogue)) {
      await input.fill(code);
      await page.locator(`dialog li:first-child a[href="/docs/errors/${code}"]`).waitFor();
      t.is(await first.getAttribute('href'), `/docs/errors/${code}`);
    }
    for (const [words, url] of [
      ['magic numbers', '/docs/sandbox'],
      ['older code resend', '/docs/resend-and-fallback'],
      ['setWebhook botfather', '/docs/telegram'],
      ['/v1/otp/verify', '/docs/api/post-otp-verify'],
      ['TRUSTED_PROXIES', '/docs/settings'],
    ] as const) {
      await input.fill(words);
      await page.locator(`dialog li a[href="${url}"]`).waitFor();
    }
    await input.fill('qqqqqqqq');
    await page.getByText('Nothing found.').waitFor();
    t.deepEqual(complaints, []);
  });
});

testing('the search works by keyboard alone', async (t) => {
  await reading({}, async ({ page }) => {
    await page.goto(`${stack.url}/docs/limits`);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('DELIVERY_FAILED');
    await page.locator('dialog li:first-child a[href="/docs/errors/DELIVERY_FAILED"]').waitFor();
    await page.keyboard.press('ArrowDown');
    t.is(
      await page.evaluate("document.activeElement.getAttribute('href')"),
      '/docs/errors/DELIVERY_FAILED',
    );
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Escape');
    t.is(await page.locator('dialog[open]').count(), 0);
    await page.keyboard.press('/');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/errors/DELIVERY_FAILED');
  });
});

for (const colorScheme of ['light', 'dark'] as const) {
  testing(`axe finds nothing serious on any kind of page, ${colorScheme}`, async (t) => {
    await reading({ colorScheme }, async ({ page }) => {
      for (const url of colorScheme === 'light' ? kinds : kinds.slice(0, 5)) {
        await page.goto(stack.url + url);
        t.deepEqual(await seriousFindings(page), [], url);
      }
      await page.goto(`${stack.url}/docs`);
      await page.keyboard.press('/');
      await page.getByRole('searchbox').fill('code');
      await page.locator('dialog li a').first().waitFor();
      t.deepEqual(await seriousFindings(page), [], 'the search');
    });
  });
}

testing('on a phone nothing is wider than the screen, and the menu opens', async (t) => {
  await reading({ viewport: { width: 390, height: 844 } }, async ({ page }) => {
    for (const url of kinds) {
      await page.goto(stack.url + url);
      t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), url);
    }
    await page.getByText('Menu', { exact: true }).click();
    await page.getByRole('navigation', { name: 'Menu' }).getByText('Quickstart').click();
    await page.waitForURL('**/docs/quickstart');
  });
});

testing('colours follow the system, and then the reader', async (t) => {
  await reading({ colorScheme: 'light' }, async ({ page }) => {
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    await page.goto(`${stack.url}/docs`);
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await background();
    t.not(light, dark);
    await page.getByRole('button', { name: 'Show the page light' }).click();
    t.is(await background(), light);
    await page.goto(`${stack.url}/docs/limits`);
    t.is(await background(), light, 'it is remembered');
  });
});

testing('a visitor sends, reads the code on the phone shown, and verifies', async (t) => {
  await reading({}, async ({ page, complaints }) => {
    await page.goto(`${stack.url}/docs/playground`);
    t.regex(await page.getByLabel('Phone', { exact: true }).inputValue(), /^\+15557\d{6}$/);
    await page.getByRole('button', { name: 'Send a code' }).click();
    await page.locator('.bubble', { hasText: '123456 is your verification code.' }).waitFor();
    await page.getByLabel('Code', { exact: true }).fill('000000');
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByRole('link', { name: 'INVALID_CODE' }).waitFor();
    await page.getByText('Tries left: 4.').waitFor();
    t.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'Copy code' }).click();
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText('Verified. The code is used up now.').waitFor();
    await page.getByRole('button', { name: 'Send a code' }).click();
    await page.getByRole('link', { name: 'RATE_LIMIT_EXCEEDED' }).waitFor();
    const log = (await page.locator('#try-log').textContent()) ?? '';
    t.regex(log, /POST \/v1\/playground\/send[\s\S]*"preview"/);
    // The refusals are answers a visitor is shown, and browsers log each 4xx.
    t.deepEqual(
      complaints.filter((text) => !/status of 4(00|29)/.test(text)),
      [],
    );
  });
});

testing('examples name the server they were read from, and can be copied', async (t) => {
  await reading({ permissions: ['clipboard-read', 'clipboard-write'] }, async ({ page }) => {
    await page.goto(`${stack.url}/docs/api/post-otp-verify`);
    await page.locator('.code-sh .copy').first().click();
    await page.getByText('Copied').waitFor();
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    t.true(copied.startsWith(`curl ${stack.url}/v1/otp/verify \\\n`), copied);
  });
});

testing(
  'without JavaScript the pages are there, with the calls the playground makes',
  async (t) => {
    await reading({ javaScriptEnabled: false }, async ({ page }) => {
      await page.goto(`${stack.url}/docs/playground`);
      t.true(await page.getByText('The page makes the two calls below').isVisible());
      t.is(await page.locator('button.search-open').isVisible(), false);
      await page.getByRole('navigation', { name: 'Pages' }).getByText('Limits').click();
      t.is(await page.locator('h1').textContent(), 'Limits');
    });
  },
);

// The documentation as a visitor meets it, in headless Chromium.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import type { Browser } from 'playwright-core';
import { renderSite } from '../../api/docs/render.ts';
import { answerFile } from '../../api/docs/serve.ts';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import { eventCatalogue } from '../../lib/webhooks/catalogue.ts';
import { browserPath, openBrowser } from '../support/browser.ts';
import {
  flawsOf,
  openReader,
  type Reader,
  searchFor,
  seriousFindings,
  turnstileScript,
} from './browser.ts';
import { facts, markdownAt, visited } from './facts.ts';
import { type Started, startBy } from './started.ts';

let stack: Started;
let browser: Browser;
const testing = browserPath() ? test : test.skip;

/** The first thing the quickstart says to type. */
const [, begin = ''] = /```sh start\n(.+)\n```/.exec(markdownAt('quickstart')) ?? [];

// Errors of a browser or an engine may hold on to all of it, and a report of the failure walks what an error holds.
const plainly = (error: unknown): never => {
  throw new Error(error instanceof Error ? error.message : String(error));
};

test.before(async () => {
  if (!browserPath()) return;
  [stack, browser] = await Promise.all([startBy(begin), openBrowser()]).catch(plainly);
});
test.after.always(async (t) => {
  await browser?.close();
  if (stack) t.is(await stack.stop(), 0, 'Ctrl-C ends it in order');
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

/** One of each kind of page, and those with the most in them. */
const kinds = new Set([
  ...['', 'quickstart', 'playground', 'limits', 'webhooks', 'settings', 'errors'],
  ...['errors/RATE_LIMIT_EXCEEDED', 'api', 'api/post-otp-send', 'api/get-clients-limits'],
]);

testing('npm start, and the rest of the quickstart pasted, end in a verified code', async (t) => {
  await reading({}, async ({ page, complaints }) => {
    await page.goto(`${stack.url}/docs/quickstart`);
    const [first, ...blocks] = await page.locator('.code-sh code').allTextContents();
    t.is(first, begin, 'what this stack was started with');
    t.true(stack.said.includes(`${stack.url}/docs`), 'it says where the documentation is');
    const options = { timeout: 60_000 };
    const { stdout } = await promisify(execFile)('sh', ['-ec', blocks.join('\n\n')], options);
    const answers = stdout.trim().replaceAll('}{', '}\n{').split('\n');
    t.regex(answers.at(-2) ?? '', /"status":"sent"/, stdout);
    t.is(answers.at(-1), '{"data":{"verified":true}}', stdout);
    t.deepEqual(complaints, []);
  });
});

testing(
  'pages load without an error, nothing leaves the host, and axe finds nothing serious in light or dark',
  async (t) => {
    await reading({ colorScheme: 'light' }, async ({ page, complaints }) => {
      for (const { path, title } of visited) {
        const answer = await page.goto(stack.url + urlOf(path), { waitUntil: 'load' });
        t.is(answer?.status(), 200, path);
        t.is(
          await page.evaluate("document.querySelector('h1').textContent.replace('#', '')"),
          title,
        );
        if (kinds.has(path)) t.deepEqual(await flawsOf(page), [], path);
      }
      t.deepEqual(complaints, []);
      await page.goto(`${stack.url}/docs/nothing`);
      t.deepEqual(await flawsOf(page), [], 'the page for what is not there');
    });
  },
);

testing(
  'the search finds each error code and kind of event first, and any other page by its words',
  async (t) => {
    await reading({}, async ({ page, complaints, bytes }) => {
      await page.goto(`${stack.url}/docs/webhooks`);
      await page.keyboard.press('/');
      const find = (words: string) => searchFor(page, words);
      for (const code of Object.keys(errorCatalogue)) {
        t.is((await find(code))[0], `/docs/errors/${code}`);
      }
      for (const type of Object.keys(eventCatalogue)) {
        t.is((await find(type))[0], `/docs/webhooks#${type.replace(/[._]/g, '-')}`);
      }
      for (const [words, url] of [
        ['magic numbers', '/docs/sandbox'],
        ['older code resend', '/docs/resend-and-fallback'],
        ['setWebhook botfather', '/docs/telegram'],
        ['/v1/otp/verify', '/docs/api/post-otp-verify'],
        ['TRUSTED_PROXIES', '/docs/settings'],
        ['TURNSTILE_SITE_KEY', '/docs/settings'],
      ] as const) {
        t.true((await find(words)).includes(url), words);
      }
      for (const odd of [
        'qqqqqqqq',
        '__defineGetter__',
        '<img src=x onerror=alert(1)>',
        '😀',
        '*',
      ]) {
        t.deepEqual(await find(odd), [], odd);
      }
      t.is(await page.getByText('Nothing found.').count(), 1);
      t.deepEqual(await seriousFindings(page), [], 'the search');
      const most = bytes();
      t.log(`the largest page with all it loads and the search: ${most} bytes`);
      t.true(most > 20_000 && most < 200_000);
      t.deepEqual(complaints, []);
    });
  },
);

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

testing('on a phone the menu opens and leads on', async (t) => {
  await reading({ viewport: { width: 390, height: 844 } }, async ({ page }) => {
    await page.goto(`${stack.url}/docs/limits`);
    await page.getByText('Menu', { exact: true }).click();
    await page.getByRole('navigation', { name: 'Menu' }).getByText('Quickstart').click();
    await page.waitForURL('**/docs/quickstart');
    t.is(await page.locator('h1').textContent(), 'Quickstart');
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

testing('where a bot check is configured the page runs it and sends each token once', async (t) => {
  await reading({}, async ({ page, complaints }) => {
    const site = { ...facts, turnstileSiteKey: '1x00' };
    const file = renderSite(site).find(({ url }) => url === '/docs/playground');
    if (!file) return t.fail('there is no playground');
    const { headers = {}, body } = answerFile(file, {});
    await page.route('**/docs/playground', (route) => route.fulfill({ headers, body }));
    // Assets of a service with other settings have the same names.
    await page.route(`${site.turnstileBaseUrl}/**`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body: turnstileScript }),
    );
    await page.goto(`${stack.url}/docs/playground`);
    const tokens: string[] = [];
    for (const number of ['+15557010301', '+15557010302']) {
      await page.getByLabel('Phone', { exact: true }).fill(number);
      const asked = page.waitForRequest('**/v1/playground/send');
      await page.getByRole('button', { name: 'Send a code' }).click();
      tokens.push(String(JSON.parse((await asked).postData() ?? '{}').turnstile_token));
      await page
        .locator('#phone-messages .bubble')
        .nth(tokens.length - 1)
        .waitFor();
    }
    t.deepEqual(tokens, ['token 1 of 1x00', 'token 2 of 1x00']);
    const left = `left the host: ${site.turnstileBaseUrl}/turnstile/v0/api.js`;
    t.deepEqual(complaints, [left], 'that script alone, and the policy of the page lets it in');
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

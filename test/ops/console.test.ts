// The console in a browser with nothing in it yet: every page there, accessible in light and dark, fit for a phone, small.
import { gzipSync } from 'node:zlib';
import test from 'ava';
import { browserPath } from '../support/browser.ts';
import {
  type Console,
  consolePaths,
  findings,
  overflowOf,
  startConsole,
} from '../support/console.ts';
import { opsToken } from '../support/settings.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let house: Console;
test.before(async () => {
  if (browserPath()) house = await startConsole('console');
});
test.after.always(async () => {
  await house?.close();
});

const bearer = { headers: { authorization: `Bearer ${opsToken}` } };

inBrowser(
  'every page is there, accessible in light and dark, and not wider than a phone',
  async (t) => {
    for (const path of consolePaths) {
      const page = await house.open(path);
      t.is(await page.locator('h1').count(), 1, path);
      t.false((await page.textContent('main'))?.includes('Something went wrong'), path);
      t.deepEqual(await findings(page), [], path);
      await page.emulateMedia({ colorScheme: 'dark' });
      t.deepEqual(await findings(page, ['color-contrast']), [], `${path} in the dark`);
      await page.setViewportSize({ width: 390, height: 800 });
      t.true((await overflowOf(page)) <= 0, `${path} is wider than a phone`);
      await page.close();
    }
    t.deepEqual(house.troubles, []);
  },
);

inBrowser('pages without data say so', async (t) => {
  const said = {
    '/ops/dead': 'There are no dead letters.',
    '/ops/dead/whatsapp.send': 'No orders yet.',
    '/ops/capacity': 'No request waits for a review.',
    '/ops/audit': 'Nobody has done anything yet.',
    '/ops/accounts?q=nobody': 'No account fits.',
  };
  for (const [path, text] of Object.entries(said)) {
    const answer = await house.ops.call(path, bearer);
    t.true(answer.text.includes(text), path);
  }
  const missing = await house.ops.call('/ops/queues/no.such', bearer);
  t.is(missing.status, 404);
  t.true(missing.text.includes('There is nothing at this address'));
});

inBrowser('a message is looked up by its phone, which no address ever shows', async (t) => {
  const phone = house.stack.phone();
  const sent = await house.customer.live.send(phone.number);
  const page = await house.open('/ops/messages');
  await page.fill('input[name=q]', phone.number);
  await page.click('text=Look up');
  await page.waitForSelector('text=What happened');
  t.true(page.url().endsWith(String(sent.data.message_id)));
  t.false((await page.content()).includes(phone.number));
  await page.close();
});

inBrowser('an empty plot says why, a full one says in words what it shows', async (t) => {
  const page = await house.open('/ops/queues/whatsapp.send');
  const words = page.locator('figure').first().locator('.lines');
  await house.ops.app.figures.sample();
  await page.reload();
  await words.getByText(/^Waiting 0, highest 0 at \d\d:\d\d$/).waitFor();
  t.is(await page.locator('figure canvas').count(), 6);
  await page.route('**/history*', (route) => route.abort());
  await page.reload();
  await page.getByText('The history cannot be shown').first().waitFor();
  await page.close();
});

inBrowser('the whole console is under 150 kB', async (t) => {
  const { text } = await house.ops.call('/ops/queues/whatsapp.send', bearer);
  const files = [...text.matchAll(/(?:href|src)="(\/ops\/assets\/[^"]+)"/g)].map(
    ([, path]) => path ?? '',
  );
  t.true(files.length >= 9);
  let bytes = gzipSync(text).length;
  for (const path of files) bytes += gzipSync((await house.ops.call(path, bearer)).text).length;
  t.true(bytes < 150_000, `${bytes}`);
  t.log(`${Math.round(bytes / 1_000)} kB`);
});

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
import { addLetters } from '../support/full-house.ts';
import { insertMessages } from '../support/made-messages.ts';
import { opsToken } from '../support/settings.ts';
import { eventually } from '../support/stack.ts';

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
    '/ops/payments': 'Every payment that was received belongs to an account.',
    '/ops/audit': 'Nobody has done anything yet.',
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

/** The word that forms of the logged-in browser carry. */
const csrfWord = async (): Promise<string> => {
  const answer = await house.context.request.get(`${house.ops.url}/ops/api/session`);
  return (await answer.json()).data.csrf;
};

/** Sends a form as a browser without scripts does, and answers the text of the page it leads to. */
const submit = async (path: string, form: Record<string, string>): Promise<string> => {
  const csrf = await csrfWord();
  const answer = await house.context.request.post(house.ops.url + path, {
    form: { csrf, ...form },
    headers: { accept: 'text/html' },
  });
  return answer.text();
};

const accountPath = (): string => `/ops/accounts/${house.customer.accountId}`;
const balance = async (): Promise<number> =>
  (await house.ops.get(`/ops/api/accounts/${house.customer.accountId}`)).data.balance;

inBrowser(
  'what came of a form waits for its own page; no other and no refresh takes it',
  async (t) => {
    const { request } = house.context;
    const csrf = await csrfWord();
    const form = { csrf, channel: 'telegram', note: 'n' };
    const to = await request.post(`${house.ops.url}/ops/channels/pause`, { form, maxRedirects: 0 });
    t.is(to.status(), 303);
    const textAt = async (path: string, headers = {}) =>
      (await request.get(house.ops.url + path, { headers })).text();
    const said = 'Telegram is paused.';
    t.false((await textAt('/ops/queues')).includes(said));
    t.false((await textAt('/ops/channels', { 'x-live': '1' })).includes(said));
    t.true((await textAt('/ops/channels')).includes(said));
    t.false((await textAt('/ops/channels')).includes(said));
  },
);

inBrowser(
  'what is so already is said, changes no record, and keeps who did it first',
  async (t) => {
    const other = { authorization: `Bearer ${opsToken}`, 'x-ops-actor': 'Second' };
    await house.ops.call('/ops/api/channels/pause', {
      method: 'POST',
      headers: { ...other, 'content-type': 'application/json' },
      body: JSON.stringify({ channel: 'telegram', note: 'later' }),
    });
    const page = await house.ops.call('/ops/channels', bearer);
    t.regex(page.text.replaceAll(/<[^>]+>/g, ''), /Paused since \d+ \w+ [\d:]+ by Tester: n/);
    const resume = () => submit('/ops/channels/resume', { channel: 'telegram' });
    t.true((await resume()).includes('Telegram sends again.'));
    t.true((await resume()).includes('Nothing changed: Telegram was not paused.'));

    const suspend = (reason: string) => submit(`${accountPath()}/suspend`, { reason });
    t.true((await suspend('first')).includes('Suspended: its keys'));
    t.true(
      (await suspend('second')).includes('Nothing changed: it was suspended already, for first.'),
    );
    const { items } = (await house.ops.get('/ops/api/audit?action=account.suspend')).data;
    t.deepEqual(
      items.map(({ affected }: { affected: number }) => affected),
      [0, 1],
    );
    await submit(`${accountPath()}/reinstate`, {});
  },
);

inBrowser('a booking whose answer was lost is booked once; the next is another', async (t) => {
  const page = await house.open(accountPath());
  const book = async (amount: string) => {
    await page.fill('input[name=amount]', amount);
    await page.click('button:text-is("Book")');
    await page.locator('dialog').getByRole('button', { name: 'Book' }).click();
  };
  const before = await balance();
  await page.route('**/credit', async (route) => {
    await route.fetch();
    await route.abort();
  });
  await book('5');
  await page.locator('#money').getByText('The ops listener gave no answer.').waitFor();
  await page.unroute('**/credit');
  await page.click('button:text-is("Book")');
  await page.locator('dialog').getByRole('button', { name: 'Book' }).click();
  await page.locator('#told').getByText('Nothing changed: it was booked before').waitFor();
  t.is(await balance(), before + 5);
  await book('7');
  await page
    .locator('#told')
    .getByText(/^Booked as/)
    .waitFor();
  t.is(await balance(), before + 12);
  for (const slip of ['0x10', '1e3', '٣', '']) {
    const answer = await submit(`${accountPath()}/credit`, { kind: 'deposit', amount: slip });
    t.true(answer.includes('Nothing was changed. Amount must be a number.'), slip);
  }
  t.is(await balance(), before + 12);
  await page.close();
});

inBrowser('messages of one number have an address of their own, without the number', async (t) => {
  await insertMessages(house.stack, house.customer, 3, 60_000);
  const page = await house.open('/ops/messages');
  await page.fill('input[name=q]', '+1 (415) 555-0123');
  await page.click('text=Look up');
  await page.waitForURL(/\?ids=otp_/);
  await page.reload();
  t.is(await page.locator('tbody tr').count(), 3);
  t.false(page.url().includes('555'));
  await page.close();
});

inBrowser('Enter where a purge is confirmed redrives nothing', async (t) => {
  await addLetters(house.stack, 'analytics.rollup', 3);
  const page = await house.open('/ops/dead/analytics.rollup');
  await page.check('text=Pick all shown');
  await page.click('summary:text-is("Throw away")');
  await page.fill('input[name=confirm]', 'analytics.rollup');
  await page.press('input[name=confirm]', 'Enter');
  await page.getByText('Confirmation is for throwing away: press one of its buttons.').waitFor();
  await page.locator('summary:text-is("Throw away")').waitFor();
  await page.close();
  // Stopping an order is on record and is no order.
  const path = '/ops/api/dead/analytics.rollup/redrive';
  const { run } = (await house.ops.post(path, { per_second: 1 })).data;
  await house.ops.post(`/ops/api/runs/${run.id}/stop`);
  await eventually(t, async () => {
    const { items } = (await house.ops.get('/ops/api/audit?subject=analytics.rollup')).data;
    return items.every(({ status }: { status: string }) => status !== 'running') || undefined;
  });
  const { text } = await house.ops.call('/ops/dead/analytics.rollup', bearer);
  const orders = text.split('Orders over these letters').at(-1) ?? '';
  t.true(orders.includes('redrive all') && !orders.includes('dead.stop'));
});

inBrowser('an address that is wrong by itself says so once and for all', async (t) => {
  const statusOf = async (path: string) => (await house.ops.call(path, bearer)).status;
  t.is(await statusOf('/ops/dead/no.such'), 404);
  t.is(await statusOf('/ops/accounts?before=xx'), 400);
  const { text } = await house.ops.call('/ops/audit?before=xx', bearer);
  t.true(text.includes('The part of the list must be an id') && !text.includes('keeps asking'));
});

// The console in a browser: every page with and without data, without an engine, for keyboard and screen reader.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import test from 'ava';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Job, whatsappSend } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { browserPath, openBrowser } from '../support/browser.ts';
import { type Ops, startOps } from '../support/ops.ts';
import { opsToken } from '../support/settings.ts';
import { type Customer, eventually, type Stack, startStack } from '../support/stack.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let stack: Stack;
let ops: Ops;
let customer: Customer;
let browser: Browser | undefined;
let context: BrowserContext;
const troubles: string[] = [];

const paths = [
  ...['/ops', '/ops/queues', '/ops/queues/whatsapp.send', '/ops/dead', '/ops/dead/whatsapp.send'],
  ...['/ops/channels', '/ops/messages', '/ops/accounts', '/ops/capacity', '/ops/switches'],
  ...['/ops/processes', '/ops/audit'],
];

const logIn = async (page: Page): Promise<void> => {
  await page.goto(`${ops.url}/ops`);
  await page.fill('input[name=actor]', 'Tester');
  await page.fill('input[name=token]', opsToken);
  await page.click('button');
  await page.waitForSelector('#problems');
};

const open = async (path: string): Promise<Page> => {
  const page = await context.newPage();
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`${path}: ${message.text()}`);
  });
  page.on('request', (request) => {
    const { origin } = new URL(request.url());
    if (origin !== ops.url && !request.url().startsWith('data:')) troubles.push(request.url());
  });
  await page.goto(ops.url + path, { waitUntil: 'domcontentloaded' });
  return page;
};

test.before(async () => {
  if (!browserPath()) return;
  stack = await startStack('console', { cuttable: true });
  customer = await stack.customer();
  ops = await startOps(stack);
  browser = await openBrowser();
  context = await browser.newContext({ viewport: { width: 1_200, height: 900 } });
  const page = await context.newPage();
  await logIn(page);
  await page.close();
});
test.after.always(async () => {
  await browser?.close();
  await ops?.close();
  await stack?.close();
});

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Finding = { id: string; impact: string; nodes: { html: string }[] };

/** What axe calls serious or worse. */
const findings = async (page: Page): Promise<string[]> => {
  await page.evaluate(axe);
  const { violations } = (await page.evaluate('axe.run()')) as { violations: Finding[] };
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
};

for (const colorScheme of ['light', 'dark'] as const) {
  inBrowser(`every page is there and accessible, ${colorScheme}`, async (t) => {
    for (const path of paths) {
      const page = await open(path);
      await page.emulateMedia({ colorScheme });
      t.is(await page.locator('h1').count(), 1, path);
      t.false((await page.textContent('main'))?.includes('Something went wrong'), path);
      t.deepEqual(await findings(page), [], path);
      await page.close();
    }
    t.deepEqual(troubles, []);
  });
}

inBrowser('nothing is wider than a phone', async (t) => {
  for (const path of paths) {
    const page = await open(path);
    await page.setViewportSize({ width: 390, height: 800 });
    const wide = await page.evaluate('document.documentElement.scrollWidth');
    t.true(Number(wide) <= 390, `${path}: ${wide}`);
    await page.close();
  }
});

inBrowser('an account is found, suspended, taken back and credited, on record', async (t) => {
  const page = await open(`/ops/accounts/${customer.accountId}`);
  await page.fill('input[name=reason]', 'a test');
  await page.click('text=Suspend');
  await page.waitForSelector('text=Suspended: its keys');
  t.is((await customer.live.get('/v1/clients/me')).error.code, 'ACCOUNT_SUSPENDED');
  await page.click('text=Reinstate');
  await page.waitForSelector('text=Reinstated');
  await page.fill('input[name=amount]', '12.5');
  await page.click('button:text("Book")');
  await page.waitForSelector('text=Booked as deposit');
  await page.fill('input[name=amount]', 'a lot');
  await page.click('button:text("Book")');
  await page.waitForSelector('text=Nothing was changed');
  await page.goto(`${ops.url}/ops/audit`);
  const told = await page.textContent('main');
  for (const action of ['account.suspend', 'account.reinstate', 'account.deposit']) {
    t.true(told?.includes(action), action);
  }
  await page.close();
});

inBrowser(
  'WhatsApp fails: the reason shows, the channel is paused, letters are redriven and drain',
  async (t) => {
    const overview = await open('/ops');
    for (let n = 0; n < 3; n++) {
      const phone = stack.phone();
      await phone.behave({ whatsapp: 'http_500' });
      void customer.live.send(phone.number);
    }
    await overview.waitForSelector('text=/WhatsApp .*answers 131000/', { timeout: 8_000 });
    await overview.close();

    const channels = await open('/ops/channels');
    const shared = channels.locator('article', { hasText: 'shared number' });
    await shared.locator('button', { hasText: 'Pause' }).click();
    await channels.waitForSelector('text=whatsapp is paused.');
    await shared.locator('button', { hasText: 'Resume' }).click();
    await channels.waitForSelector('text=whatsapp sends again.');
    await channels.close();

    const payload = { no: 'job' };
    for (let n = 0; n < 20; n++) {
      await stack.publishUnchecked(whatsappSend as Job, payload, { messageId: newId() });
    }
    await eventually(t, async () => {
      const { items } = (await ops.get('/ops/api/queues')).data;
      return (
        items.find(({ job }: { job: string }) => job === 'whatsapp.send').dead === 20 || undefined
      );
    });
    const dead = await open('/ops/dead/whatsapp.send');
    t.is(await dead.locator('tbody input[type=checkbox]').count(), 20);
    await dead.fill('input[name=confirm]', 'whatsapp.send');
    await dead.click('button:text("Purge")');
    await dead.waitForSelector('text=There are no dead letters.', { timeout: 10_000 });
    t.deepEqual(await findings(dead), []);
    await dead.close();
  },
);

inBrowser('a message is looked up by its phone, which no address ever shows', async (t) => {
  const phone = stack.phone();
  const sent = await customer.live.send(phone.number);
  const page = await open('/ops/messages');
  await page.fill('input[name=q]', phone.number);
  await page.click('text=Look up');
  await page.waitForSelector('text=What happened');
  t.true(page.url().endsWith(String(sent.data.message_id)));
  t.false((await page.content()).includes(phone.number));
  await page.close();
});

inBrowser('with an engine away every page says so and none breaks', async (t) => {
  for (const engine of ['redis', 'mysql'] as const) {
    stack.lines?.[engine].cut();
    for (const path of [
      '/ops',
      '/ops/queues',
      '/ops/channels',
      '/ops/accounts',
      '/ops/processes',
    ]) {
      const answer = await fetch(ops.url + path, {
        headers: { authorization: `Bearer ${opsToken}` },
      });
      const text = await answer.text();
      t.not(answer.status, 500, `${path} without ${engine}`);
      t.false(text.includes('Something went wrong'), `${path} without ${engine}`);
    }
    stack.lines?.[engine].mend();
  }
});

inBrowser('the whole console is under 150 kB', async (t) => {
  const page = await fetch(`${ops.url}/ops/queues/whatsapp.send`, {
    headers: { authorization: `Bearer ${opsToken}` },
  });
  const text = await page.text();
  const files = [...text.matchAll(/(?:href|src)="(\/ops\/assets\/[^"]+)"/g)].map(
    ([, path]) => path,
  );
  t.true(files.length >= 4);
  let bytes = gzipSync(text).length;
  for (const path of files) {
    const held = { headers: { authorization: `Bearer ${opsToken}` } };
    bytes += gzipSync(Buffer.from(await (await fetch(ops.url + path, held)).arrayBuffer())).length;
  }
  t.true(bytes < 150_000, `${bytes}`);
  t.log(`${Math.round(bytes / 1_000)} kB`);
});

// The console of a platform in long use: everything legible, in parts, fast, and not wider than a phone.
import test from 'ava';
import { browserPath } from '../support/browser.ts';
import { type Console, findings, overflowOf, startConsole } from '../support/console.ts';
import { addAccounts, addAudit, addLetters, addProcesses, nameAt } from '../support/full-house.ts';
import { opsToken } from '../support/settings.ts';
import { eventually } from '../support/stack.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let house: Console;
test.before(async (t) => {
  t.timeout(60_000);
  if (!browserPath()) return;
  house = await startConsole('much', { workers: ['whatsapp'] });
  const { stack, customer, ops } = house;
  await addAccounts(stack, customer.accountId, 300);
  await addAudit(stack, { count: 1_000, now: Date.now(), subject: customer.accountId });
  await addLetters(stack, 'webhook.dispatch', 500);
  for (let tries = 0; (await ops.app.pulses.readPulses()).length === 0 && tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await addProcesses(ops, 40);
});
test.after.always(async () => {
  await house?.close();
});

/** The server's own share, on a machine that does much else at the time. */
const fastMs = 3_000;

const fetchMs = async (path: string): Promise<number> => {
  const startedAt = performance.now();
  await house.ops.call(path, { headers: { authorization: `Bearer ${opsToken}` } });
  return performance.now() - startedAt;
};

inBrowser('500 dead letters come in parts of 50, by reason, with their errors whole', async (t) => {
  const page = await house.open('/ops/dead/webhook.dispatch');
  await page.getByText('500 dead letters, the oldest dead for').waitFor();
  t.is(await page.locator('tbody input[type=checkbox]').count(), 50);
  t.true((await page.textContent('main'))?.includes('1 to 50 of 500'));
  await page.check('text=Pick all shown');
  await page.getByRole('button', { name: 'Redrive picked (50)' }).waitFor();
  await page.getByText('Newer ones').click();
  await page.getByText('51 to 100 of 500').waitFor();
  await page.getByText('malformed_payload 125').click();
  await page.getByText('1 to 50 of 125').waitFor();
  await page.getByRole('button', { name: 'Redrive all 125' }).waitFor();
  t.true((await page.textContent('tbody'))?.includes('in-it-anywhere-7f3a9b2c'));
  await page.setViewportSize({ width: 390, height: 800 });
  t.true((await overflowOf(page)) <= 0);
  t.deepEqual(await findings(page), []);
  await page.close();
});

inBrowser('300 accounts are found by names in any script, and turned over in parts', async (t) => {
  const page = await house.open('/ops/accounts');
  t.is(await page.locator('tbody tr').count(), 50);
  await page.getByRole('link', { name: 'Older' }).click();
  await page.getByText(nameAt(200).slice(0, 20)).first().waitFor();
  await page.getByRole('link', { name: 'Newest' }).click();
  await page.waitForURL(/\/ops\/accounts$/);
  await page.fill('input[name=q]', 'متجر سارة 299');
  await page.click('text=Find >> nth=-1');
  // What was searched by stands in no address, and yet the address can be reloaded.
  await page.waitForURL(/look=/);
  t.false(decodeURIComponent(page.url()).includes('متجر'));
  await page.reload();
  t.is(await page.inputValue('input[name=q]'), 'متجر سارة 299');
  const names = await page.locator('tbody th a bdi').allTextContents();
  t.true(names.length === 1 && names.every((name) => name.startsWith('متجر')));
  await page.setViewportSize({ width: 390, height: 800 });
  t.true((await overflowOf(page)) <= 0);
  t.deepEqual(await findings(page), []);
  const { status } = await house.ops.call('/ops/accounts?look=made-up', {
    headers: { authorization: `Bearer ${opsToken}` },
  });
  t.is(status, 400);
  await page.locator('tbody a').first().click();
  await page.waitForSelector('h1:has-text("متجر")');
  t.true((await overflowOf(page)) <= 0);
  await page.close();
});

inBrowser('1,000 audit lines are turned over and narrowed down', async (t) => {
  const page = await house.open('/ops/audit');
  t.is(await page.locator('tbody tr').count(), 50);
  t.true((await page.textContent('tbody'))?.includes('ids 40 of them, per second 200'));
  await page.getByRole('link', { name: 'Older' }).click();
  await page.waitForURL(/before=/);
  await page.selectOption('select[name=action]', 'dead.redrive');
  await page.click('text=Show');
  await page.waitForURL(/action=dead.redrive/);
  const done = await page.locator('tbody tr td:nth-child(3)').allTextContents();
  t.true(done.length === 50 && done.every((action) => action === 'dead.redrive'));
  await page.setViewportSize({ width: 390, height: 800 });
  t.true((await overflowOf(page)) <= 0);
  t.deepEqual(await findings(page), []);
  await page.close();
});

inBrowser(
  'many processes: those in trouble first, and one problem on the overview for all alike',
  async (t) => {
    const page = await house.open('/ops/processes');
    t.true((await page.locator('tbody tr').count()) > 40);
    const states = await page.locator('section#all tbody tr td:nth-child(2)').allTextContents();
    t.deepEqual(
      states,
      [...states].sort((one, other) => Number(one === 'alive') - Number(other === 'alive')),
    );
    await page.setViewportSize({ width: 390, height: 800 });
    t.true((await overflowOf(page)) <= 0);
    await page.goto(`${house.ops.url}/ops`);
    await eventually(t, async () =>
      (await page.textContent('#problems'))?.includes('more like this.') ? true : undefined,
    );
    t.true((await page.locator('.problems li').count()) < 12);
    t.true((await overflowOf(page)) <= 0);
    await page.close();
  },
);

inBrowser('with much data every page is made soon', async (t) => {
  const paths = ['/ops', '/ops/queues', '/ops/dead/webhook.dispatch', '/ops/accounts'];
  for (const path of [...paths, '/ops/channels', '/ops/processes', '/ops/audit']) {
    const ms = await fetchMs(path);
    t.log(`${path}: ${Math.round(ms)} ms`);
    t.true(ms < fastMs, `${path}: ${Math.round(ms)} ms`);
  }
  t.deepEqual(house.troubles, []);
});

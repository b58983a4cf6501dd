// Acting through the console: what is done, refused, in conflict, logged out or without its engine is said in its place.
import test from 'ava';
import type { Page } from 'playwright-core';
import { browserPath } from '../support/browser.ts';
import { type Console, findings, startConsole } from '../support/console.ts';
import { addLetters } from '../support/full-house.ts';
import { opsToken } from '../support/settings.ts';
import { eventually } from '../support/stack.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let house: Console;
test.before(async () => {
  if (browserPath()) house = await startConsole('acts', { cuttable: true, workers: ['whatsapp'] });
});
test.after.always(async () => {
  await house?.close();
});

const accountPath = (): string => `/ops/accounts/${house.customer.accountId}`;

const confirm = async (page: Page, yes: string): Promise<void> => {
  await page.locator('dialog').getByRole('button', { name: yes, exact: true }).click();
};

const told = (page: Page, text: string | RegExp): Promise<void> =>
  page.locator('#told').getByText(text).waitFor();

const refusal = (page: Page, within: string): Promise<string | null> =>
  page.locator(`${within} .said.failed`).textContent();

/** Holds the page still and lets it live again: then it asks at once. */
const askNow = async (page: Page): Promise<void> => {
  await page.click('#live');
  const [answer] = await Promise.all([page.waitForResponse(page.url()), page.click('#live')]);
  await answer.finished();
};

const deadOf = async (job: string): Promise<number> => {
  const { items } = (await house.ops.get('/ops/api/queues')).data;
  return items.find((one: { job: string }) => one.job === job).dead;
};

inBrowser('an account is suspended, taken back, credited and priced, all on record', async (t) => {
  const page = await house.open(accountPath());
  await page.fill('input[name=reason]', 'a test');
  await page.click('text=Suspend');
  t.true((await page.textContent('dialog'))?.includes('Reason: a test'));
  await confirm(page, 'Suspend');
  await told(page, 'Suspended: its keys');
  t.is((await house.customer.live.get('/v1/clients/me')).error.code, 'ACCOUNT_SUSPENDED');
  await page.click('text=Reinstate');
  await told(page, 'Reinstated');
  await page.fill('input[name=amount]', '12.5');
  await page.click('button:text-is("Book")');
  t.true((await page.textContent('dialog'))?.includes('Book 12.5 USD for Customer?'));
  await confirm(page, 'Book');
  await told(page, /Booked as deposit:.* 10,012.50 USD/);
  t.is(await page.inputValue('input[name=amount]'), '');
  await page.fill('#prices input[name=country]', 'de');
  await page.fill('#prices input[name=price]', '0.07');
  await page.click('#prices button');
  await told(page, 'The price for DE is 0.07 USD.');
  await page.goto(`${house.ops.url}/ops/audit?subject=${house.customer.accountId}`);
  const seen = await page.textContent('main');
  for (const action of ['suspend', 'reinstate', 'deposit', 'price']) {
    t.true(seen?.includes(`account.${action}`), action);
  }
  await page.close();
});

inBrowser('a payment for nobody we know is told of first, and booked to its account', async (t) => {
  const payment = { name: 'cs_stray', account: 'user_42', accountId: null, intent: null };
  await house.stack.api.payers.keep({ ...payment, amountMicros: 7_500_000, at: Date.now() });
  const page = await house.open('/ops');
  await page.getByText('1 payment came for no account we know').waitFor();
  await page.click('a[href="/ops/payments"]:text-is("Book")');
  await page.getByText('user_42').waitFor();
  t.deepEqual(await findings(page), []);
  await page.fill('input[name=account]', 'somebody');
  await page.click('button:text-is("Book it")');
  await confirm(page, 'Book');
  await page.locator('.said.failed').getByText('Nothing was changed. The account ').waitFor();
  await page.fill('input[name=account]', house.customer.accountId);
  await page.click('button:text-is("Book it")');
  t.true(
    (await page.textContent('dialog'))?.includes(`to the account ${house.customer.accountId}?`),
  );
  await confirm(page, 'Book');
  await told(page, /^Booked\. The account has [\d,.]+ USD now\.$/);
  await page.getByText('Every payment that was received belongs to an account.').waitFor();
  await page.close();
});

inBrowser('a country gets a price of its own, and is sold as everywhere again', async (t) => {
  const page = await house.open('/ops/switches');
  const form = page.locator('form[action="/ops/switches/price"]');
  await form.locator('input[name=country]').fill('de');
  await form.locator('input[name=price]').fill('0.07');
  await form.locator('input[name=cost]').fill('0.05');
  await form.getByRole('button').click();
  await confirm(page, 'Set');
  await told(page, 'The price for DE is set.');
  const remove = page.locator('form[action="/ops/switches/price-remove"]');
  await remove.getByRole('button').click();
  t.regex((await page.textContent('dialog')) ?? '', /Sell DE at the price for everywhere/);
  await confirm(page, 'As everywhere');
  await told(page, 'DE is sold at the price for everywhere.');
  await remove.waitFor({ state: 'detached' });
  t.deepEqual(await findings(page), []);
  await page.close();
});

inBrowser(
  'what is refused is said at the form, with its field marked and nothing lost',
  async (t) => {
    const page = await house.open(accountPath());
    await page.fill('input[name=amount]', 'a lot');
    await page.fill('#money input[name=note]', 'half a note');
    await page.click('button:text-is("Book")');
    await confirm(page, 'Book');
    t.is(await refusal(page, '#money'), 'Nothing was changed. Amount must be a number.');
    const amount = page.locator('input[name=amount]');
    t.is(await amount.getAttribute('aria-invalid'), 'true');
    t.is(await page.evaluate('document.activeElement.name'), 'amount');
    t.is(await amount.inputValue(), 'a lot');
    t.is(await page.inputValue('#money input[name=note]'), 'half a note');
    await page.selectOption('select[name=kind]', 'deposit');
    await amount.fill('-5');
    await page.click('button:text-is("Book")');
    await confirm(page, 'Book');
    await page
      .locator('#money')
      .getByText('Amount must be positive for a payment; a correction')
      .waitFor();
    t.deepEqual(await findings(page), []);
    // A question that is not answered with yes does nothing.
    await amount.fill('5');
    await page.click('button:text-is("Book")');
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    t.is(await amount.inputValue(), '5');
    await page.close();
  },
);

inBrowser(
  'letters: nothing picked, a wrong word, an order that runs already, a purge that is meant',
  async (t) => {
    await addLetters(house.stack, 'billing.charge', 30);
    const page = await house.open('/ops/dead/billing.charge');
    await page.click('text=Redrive picked');
    t.is(
      await refusal(page, '#letters'),
      'Nothing was changed. Pick at least one letter in the list first.',
    );
    await page.fill('input[name=per_second]', '9000');
    await page.evaluate("document.querySelector('form[data-ticks]').noValidate = true");
    await page.locator('tbody input[type=checkbox]').first().check();
    await page.click('text=Redrive picked (1)');
    await page
      .locator('#letters')
      .getByText(/How many a second must be less than or equal to 5000/)
      .waitFor();
    t.true(await page.locator('tbody input[type=checkbox]').first().isChecked());

    // Somebody else has begun meanwhile; this page has not heard of it.
    await page.click('#live');
    const begun = await house.ops.post('/ops/api/dead/billing.charge/redrive', { per_second: 1 });
    await page.fill('input[name=per_second]', '200');
    await page.click('text=Redrive picked (1)');
    await page
      .locator('#letters')
      .getByText('An order runs over its dead letters already')
      .waitFor();
    await page.reload();
    await page.waitForSelector('progress');
    await page.click('#letters >> text=Stop');
    await told(page, 'Stopping: what is not settled stays dead.');
    await eventually(t, async () => {
      const { run } = (await house.ops.get(`/ops/api/runs/${begun.data.run.id}`)).data;
      return run.status === 'stopped' ? true : undefined;
    });
    await page.reload();

    await page.click('summary:text-is("Throw away")');
    await page.fill('input[name=confirm]', 'billing');
    await page.click('text=/^Purge all/');
    t.is(
      await refusal(page, '#letters'),
      'Nothing was changed. Confirmation must be billing.charge.',
    );
    await page.fill('input[name=confirm]', 'billing.charge');
    await page.click('text=/^Purge all/');
    await told(page, 'Throwing them away.');
    await eventually(t, async () => ((await deadOf('billing.charge')) === 0 ? true : undefined));
    await page.close();
  },
);

inBrowser(
  'a login that ends in the middle is asked for in front of the page, and the act goes on',
  async (t) => {
    const page = await house.open('/ops/channels');
    const bot = page.locator('article', { hasText: 'Telegram' });
    await bot.locator('input[name=note]').fill('a long and careful reason');
    await house.context.clearCookies();
    await bot.getByRole('button', { name: 'Pause' }).click();
    await confirm(page, 'Pause');
    const dialog = page.locator('dialog');
    await dialog.getByText('Your login has ended. What you have written is still here.').waitFor();
    await dialog.locator('input[name=token]').fill('not the token');
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await dialog.getByText('This token is not correct.').waitFor();
    t.deepEqual(await findings(page), []);
    await dialog.locator('input[name=token]').fill(opsToken);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await told(page, 'Telegram is paused.');
    await bot.getByText('by Tester: a long and careful reason').waitFor();
    await bot.getByRole('button', { name: 'Resume' }).click();
    await told(page, 'Telegram sends again.');

    // Not now: nothing is done, and nothing is lost.
    await bot.locator('input[name=note]').fill('another reason');
    await house.context.clearCookies();
    await bot.getByRole('button', { name: 'Pause' }).click();
    await confirm(page, 'Pause');
    await dialog.getByRole('button', { name: 'Not now' }).click();
    await bot.getByText('Nothing was changed: you are not logged in.').waitFor();
    t.is(await bot.locator('input[name=note]').inputValue(), 'another reason');
    // The page itself offers the login too.
    await page.waitForSelector('#live:text-is("Log in")');
    await page.click('#live');
    await dialog.locator('input[name=token]').fill(opsToken);
    await dialog.getByRole('button', { name: 'Log in' }).click();
    await page.waitForSelector('#live:text-is("Live")');
    t.is(await bot.locator('input[name=note]').inputValue(), 'another reason');
    await page.close();
  },
);

inBrowser(
  'an engine that goes in the middle: the act says which, and keeps what was written',
  async (t) => {
    const page = await house.open(accountPath());
    await page.fill('input[name=amount]', '3');
    await page.fill('#money input[name=note]', 'in the middle');
    house.stack.lines?.mysql.cut();
    await page.click('button:text-is("Book")');
    await confirm(page, 'Book');
    t.is(
      await refusal(page, '#money'),
      'MySQL does not answer. Look whether it was done before you try again.',
    );
    t.is(await page.inputValue('input[name=amount]'), '3');
    // The page goes on asking, and takes nothing away meanwhile.
    await askNow(page);
    await page.waitForSelector('#away:has-text("MySQL does not answer.")');
    await page.waitForSelector('#heard:has-text("Some of this is as of")');
    t.is(await page.inputValue('#money input[name=note]'), 'in the middle');
    house.stack.lines?.mysql.mend();
    await eventually(t, async () => {
      await askNow(page);
      return (await page.textContent('#away')) === '' ? true : undefined;
    });
    await page.click('button:text-is("Book")');
    await confirm(page, 'Book');
    await told(page, /Booked as deposit/);
    await page.close();
  },
);

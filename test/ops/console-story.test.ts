// The story of a bad night, in one go: WhatsApp fails, an operator sees why, pauses it, and has what died delivered.
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import type { SendJob } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { sealCode } from '../../lib/otp/sealed.ts';
import { browserPath } from '../support/browser.ts';
import { type Console, findings, startConsole } from '../support/console.ts';
import { addLetters } from '../support/full-house.ts';
import type { TestPhone } from '../support/phones.ts';
import { type Customer, eventually } from '../support/stack.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let house: Console;
test.before(async () => {
  if (browserPath()) house = await startConsole('story');
});
test.after.always(async () => {
  await house?.close();
});

/** A send that goes on in the background: nobody waits for it, and it has no deadline. */
const lateSend = (phone: TestPhone, code: string): SendJob => {
  const id = newId();
  return {
    message: {
      ...{ id, account_id: house.customer.accountId, mode: 'live', origin: 'send' },
      ...{ phone: phone.number, country: 'US', request_id: `req_${id}`, plan: 'pay_per_success' },
      ...{ price_micros: 0, idempotency_hash: null },
    },
    sealed_code: sealCode(house.stack.api.sealer, id, code),
    ...{ tried: [], reason: null, reachable: true, late: true },
  };
};

/** A customer goes on sending to phones whose WhatsApp behaves like this, until told to stop or the test ends. */
const keepSending = (t: ExecutionContext, customer: Customer, behaviour: string) => {
  const answers: Promise<unknown>[] = [];
  const send = async (): Promise<void> => {
    const phone = house.stack.phone();
    await phone.behave({ whatsapp: behaviour });
    await customer.live.send(phone.number);
  };
  const timer = setInterval(() => answers.push(send().catch(() => undefined)), 150);
  const stop = async (): Promise<void> => {
    clearInterval(timer);
    await Promise.all(answers);
  };
  t.teardown(stop);
  return stop;
};

const tile = async (page: Page, term: string): Promise<number> =>
  Number((await page.textContent(`dl.figures > div:has(dt:has-text("${term}")) dd`)) ?? 'NaN');

const pressAndConfirm = async (page: Page, button: string, yes: string): Promise<void> => {
  await page.getByRole('button', { name: button, exact: true }).click();
  await page.locator('dialog').getByRole('button', { name: yes, exact: true }).click();
};

inBrowser(
  'WhatsApp fails, is paused, mended and resumed, and every dead letter arrives',
  async (t) => {
    const { stack, customer, open } = house;
    const phones = Array.from({ length: 20 }, () => stack.phone());
    await Promise.all(phones.map((phone) => phone.behave({ whatsapp: 'http_500' })));

    const page = await open('/ops');
    const startedAt = performance.now();
    const stop = keepSending(t, customer, 'http_500');
    // What is wrong and why, without touching the page.
    await page.waitForSelector(
      'text=/WhatsApp \\(shared number\\) answers 131000 \\(trouble on its side\\) since \\d\\d:\\d\\d/',
      { timeout: 30_000 },
    );
    await eventually(t, async () => ((await tile(page, 'Retrying')) > 0 ? true : undefined));
    t.log(`seen after ${Math.round(performance.now() - startedAt)} ms`);
    const before = await tile(page, 'Retrying');
    // A second customer: retries of the first alone stand still once as many end as begin.
    const stopSecond = keepSending(t, await stack.customer(), 'http_500');
    await eventually(t, async () => ((await tile(page, 'Retrying')) > before ? true : undefined));

    await page.getByRole('link', { name: /See the channel/ }).click();
    await page.waitForSelector(
      'article:has-text("shared number"):has-text("fails") >> text=/It answers 131000/',
    );
    const whole = page.locator('article', { hasText: 'WhatsApp as a whole' });
    await whole.locator('input[name=note]').fill('WhatsApp answers nothing but 500');
    await pressAndConfirm(page, 'Pause WhatsApp as a whole', 'Pause');
    await page.waitForSelector('#told:text-is("WhatsApp is paused.")');
    await whole.getByText('by Tester: WhatsApp answers nothing but 500').waitFor();
    await Promise.all([stop(), stopSecond()]);
    const refused = await customer.live.send(stack.phone().number);
    t.is(refused.error.code, 'CENTRAL_WHATSAPP_PAUSED');

    // While it was down, sends died that nobody waits for.
    await addLetters(stack, 'whatsapp.send', phones.length, (n) =>
      lateSend(phones[n] ?? stack.phone(), String(100_000 + n)),
    );
    await page.goto(`${house.ops.url}/ops`);
    await page.waitForSelector('text=/WhatsApp is paused since .* by Tester: WhatsApp answers/');
    await page.getByRole('link', { name: /Look and redrive/ }).click();
    await page.waitForSelector('text=20 dead letters');
    await page.waitForSelector('text=WhatsApp is paused: what is redriven now fails at once.');

    await Promise.all(phones.map((phone) => phone.behave({ whatsapp: 'ok' })));
    await page.getByRole('link', { name: 'Resume it' }).click();
    await page.getByRole('button', { name: 'Resume WhatsApp as a whole' }).click();
    await page.waitForSelector('#told:text-is("WhatsApp sends again.")');

    await page.goto(`${house.ops.url}/ops/dead/whatsapp.send`);
    await page.fill('input[name=per_second]', '10');
    await pressAndConfirm(page, 'Redrive all 20', 'Redrive');
    // It is watched as it drains.
    await page.waitForSelector('progress');
    t.deepEqual(await findings(page), []);
    await page.waitForSelector('text=There are no dead letters.');
    await page.waitForSelector('tr:has-text("redrive all"):has-text("20"):has-text("done")');
    for (const [n, phone] of phones.entries()) {
      // The sending number may still rest from its failures: then a send takes a step of its ladder.
      await eventually(t, async () => ((await phone.code()) ? true : undefined), 60_000);
      t.is(await phone.code(), String(100_000 + n));
      t.is((await phone.messages()).length, 1);
    }
    await page.goto(`${house.ops.url}/ops`);
    await eventually(t, async () => ((await tile(page, 'Dead letters')) === 0 ? true : undefined));
    t.deepEqual(house.troubles, []);
  },
);

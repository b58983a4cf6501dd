// The console while an engine is away: every page answers soon, says which one, and still shows what it can.
import test from 'ava';
import { browserPath } from '../support/browser.ts';
import { type Console, consolePaths, findings, startConsole } from '../support/console.ts';
import { opsToken } from '../support/settings.ts';
import { eventually } from '../support/stack.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let house: Console;
test.before(async () => {
  if (browserPath()) house = await startConsole('away', { cuttable: true });
});
test.after.always(async () => {
  await house?.close();
});

const soonMs = 6_000;

const textOf = async (path: string): Promise<{ text: string; status: number; ms: number }> => {
  const startedAt = performance.now();
  const { text, status } = await house.ops.call(path, {
    headers: { authorization: `Bearer ${opsToken}` },
  });
  return { text, status, ms: performance.now() - startedAt };
};

const accountPath = (): string => `/ops/accounts/${house.customer.accountId}`;

/** What each page still says without an engine, beside which one it is. */
const stillSaid = {
  mysql: {
    title: 'MySQL',
    pages: {
      '/ops': 'New accounts, prices and reports wait until it is back.',
      '/ops/queues': 'telegram.update',
      '/ops/dead/whatsapp.send': 'There are no dead letters.',
      '/ops/accounts': 'The accounts cannot be shown.',
      '/ops/audit': 'The audit log cannot be shown.',
      '/ops/processes': 'does not answer',
    },
  },
  redis: {
    title: 'Redis',
    pages: {
      '/ops': 'Sends, verifies and logins are refused with 503 until it is back.',
      '/ops/queues': 'telegram.update',
      '/ops/dead': 'There are no dead letters.',
      '/ops/channels': 'not known while Redis is away',
      '/ops/accounts': 'Customer',
      '/ops/processes': 'The processes cannot be shown.',
    },
  },
  amqp: {
    title: 'RabbitMQ',
    pages: {
      '/ops': 'Nothing is sent until it is back.',
      '/ops/queues': 'The queues cannot be shown.',
      '/ops/dead': 'The dead letters cannot be shown.',
      '/ops/dead/whatsapp.send': 'No orders yet.',
      '/ops/channels': 'WhatsApp (shared number)',
      '/ops/accounts': 'Customer',
      '/ops/processes': 'workers',
    },
  },
} as const;

for (const [engine, { title, pages }] of Object.entries(stillSaid)) {
  inBrowser(`without ${title} every page says so and shows what it can`, async (t) => {
    const line = house.stack.lines?.[engine as keyof typeof stillSaid];
    const page = await house.open('/ops');
    t.teardown(() => line?.mend());
    line?.cut();
    // The page that is open hears of it by itself.
    await page.waitForSelector(`.problems .urgent:has-text("${title} does not answer.")`);
    t.deepEqual(await findings(page), []);
    for (const path of [...consolePaths, accountPath()]) {
      const { text, status, ms } = await textOf(path);
      t.true(text.includes(`${title} does not answer.`), `${path} says which`);
      t.false(text.includes('Something went wrong'), path);
      t.true(status === 200 || status === 503, `${path}: ${status}`);
      t.true(ms < soonMs, `${path} took ${Math.round(ms)} ms`);
    }
    for (const [path, words] of Object.entries(pages)) {
      t.true((await textOf(path)).text.includes(words), `${path}: ${words}`);
    }
    line?.mend();
    await page.waitForSelector(`#page:not(:has-text("${title} does not answer"))`);
    await page.close();
    await eventually(t, async () =>
      (await textOf('/ops')).text.includes('does not answer') ? undefined : true,
    );
  });
}

inBrowser('engines that keep their connections and answer nothing are away', async (t) => {
  const { redis, amqp } = house.stack.lines ?? {};
  const mend = () => [redis, amqp].map((line) => line?.mend());
  t.teardown(mend);
  for (const line of [redis, amqp]) line?.hang();
  await eventually(t, async () => {
    const { text } = await textOf('/ops');
    const away = ['Redis', 'RabbitMQ'].every((title) => text.includes(`${title} does not answer.`));
    return away ? true : undefined;
  });
  const { text, ms } = await textOf(accountPath());
  t.true(text.includes('Customer') && ms < soonMs, `${Math.round(ms)} ms`);
  mend();
  await eventually(t, async () =>
    (await textOf('/ops')).text.includes('does not answer') ? undefined : true,
  );
});

inBrowser(
  'with the listener itself away the page says since when, and goes on afterwards',
  async (t) => {
    const page = await house.open('/ops/queues');
    await page.route('**/ops/queues', (route) => route.abort());
    await page.waitForSelector('#heard:has-text("No answer; as of")');
    t.true((await page.textContent('#page'))?.includes('whatsapp.send'));
    await page.unroute('**/ops/queues');
    await page.waitForSelector('#heard:text-is("")', { state: 'attached' });
    await page.close();
    t.deepEqual(house.troubles, []);
  },
);

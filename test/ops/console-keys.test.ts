// The console with the keyboard alone, and updates that disturb nobody: focus in order and seen, dialogs that hold it, typing kept.
import test from 'ava';
import type { Page } from 'playwright-core';
import { browserPath } from '../support/browser.ts';
import { type Console, startConsole } from '../support/console.ts';
import { addLetters } from '../support/full-house.ts';
import { opsToken } from '../support/settings.ts';
import { eventually } from '../support/stack.ts';

const inBrowser = browserPath() === undefined ? test.serial.skip : test.serial;

let house: Console;
test.before(async () => {
  if (!browserPath()) return;
  house = await startConsole('keys', { workers: ['whatsapp'] });
  await addLetters(house.stack, 'webhook.dispatch', 6);
});
test.after.always(async () => {
  await house?.close();
});

/** What has the focus, in a word or two. */
const focused = async (page: Page): Promise<string> =>
  String(
    await page.evaluate(`(() => {
      const node = document.activeElement;
      return node.name || node.id || node.textContent.trim().replace(/\\s+/g, ' ').slice(0, 60);
    })()`),
  );

/** Whether what has the focus shows it: an outline, and within the window. */
const isSeen = (page: Page): Promise<unknown> =>
  page.evaluate(`(() => {
    const node = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(node);
    const box = node.getBoundingClientRect();
    const header = document.querySelector('header').getBoundingClientRect();
    const under = node.closest('header, dialog, .skip') ? false : box.top < header.bottom - 1;
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && box.width > 1 && !under;
  })()`);

/** Presses Tab until `name` has the focus, and answers everything on the way. */
const tabTo = async (page: Page, name: string, most = 60): Promise<string[]> => {
  const way: string[] = [];
  while (way.at(-1) !== name && way.length < most) {
    await page.keyboard.press('Tab');
    way.push(await focused(page));
  }
  return way;
};

/** A refresh that was laid over the page after this moment. */
const refreshed = (page: Page): Promise<unknown> =>
  page.evaluate(
    "new Promise((done) => document.addEventListener('laid', () => done(true), { once: true }))",
  );

inBrowser('logging in, and past the menu to the content, without a mouse', async (t) => {
  await house.context.clearCookies();
  const page = await house.open('/ops/channels');
  await tabTo(page, 'actor');
  await page.keyboard.type('Tester');
  await page.keyboard.press('Tab');
  await page.keyboard.type(opsToken);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#page');
  await page.goto(`${house.ops.url}/ops/channels`);
  const way = await tabTo(page, 'To the content', 3);
  t.deepEqual(way, ['To the content']);
  t.true(await isSeen(page));
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  t.is(await focused(page), 'note');
  t.true(await isSeen(page));
  await page.close();
});

inBrowser(
  'every stop of a page is seen, in the order of the page, and none comes twice',
  async (t) => {
    for (const path of ['/ops', '/ops/dead/webhook.dispatch', '/ops/switches']) {
      const page = await house.open(path);
      await page.click('#live');
      await page.evaluate('document.activeElement.blur()');
      const tops: number[] = [];
      const stops = new Set<string>();
      for (;;) {
        await page.keyboard.press('Tab');
        const where = (await page.evaluate(`(() => {
        const node = document.activeElement;
        if (node === document.body) return null;
        document.stops ??= [];
        document.stops.push(node);
        const all = [...document.querySelectorAll('*')];
        return { at: all.indexOf(node), twice: document.stops.indexOf(node) < document.stops.length - 1 };
      })()`)) as { at: number; twice: boolean } | null;
        if (where === null || where.twice) break;
        t.true(await isSeen(page), `${path}: ${await focused(page)}`);
        tops.push(where.at);
        stops.add(await focused(page));
      }
      t.deepEqual(
        tops,
        tops.toSorted((one, other) => one - other),
        path,
      );
      t.true(tops.length > 12, `${path}: ${[...stops].join(', ')}`);
      await page.close();
    }
  },
);

inBrowser('a question holds the focus, begins with no, and gives the focus back', async (t) => {
  const page = await house.open('/ops/dead/webhook.dispatch');
  await page.focus('button:has-text("Redrive all")');
  await page.keyboard.press('Enter');
  t.is(await focused(page), 'Cancel');
  t.true(await isSeen(page));
  const around: string[] = [];
  for (let n = 0; n < 6; n++) {
    await page.keyboard.press('Tab');
    around.push(await focused(page));
  }
  t.true(around.includes('Redrive'));
  t.true(
    around.every((name) => ['Cancel', 'Redrive'].includes(name) || name.startsWith('Redrive 6')),
    around.join(', '),
  );
  await page.keyboard.press('Escape');
  t.is(await focused(page), 'which');
  t.is(await page.locator('text=No orders yet.').count(), 1);
  await page.close();
});

inBrowser('updates take neither focus, nor words, nor ticks, nor open parts', async (t) => {
  const page = await house.open('/ops/dead/webhook.dispatch');
  await page.locator('tbody input[type=checkbox]').nth(1).check();
  await page.locator('tbody summary').nth(2).click();
  await page.locator('summary:text-is("Throw away")').click();
  await page.locator('input[name=confirm]').pressSequentially('webhook.dis');
  // One more dies meanwhile: the list changes under the hands.
  await addLetters(house.stack, 'webhook.dispatch', 1);
  await page.getByText('7 dead letters').waitFor();
  await page.locator('input[name=confirm]').pressSequentially('patch');
  await refreshed(page);
  t.is(await focused(page), 'confirm');
  t.is(await page.inputValue('input[name=confirm]'), 'webhook.dispatch');
  t.is(await page.locator('tbody input[type=checkbox]:checked').count(), 1);
  t.is(await page.locator('tbody details[open]').count(), 1);
  await page.getByRole('button', { name: 'Redrive picked (1)' }).waitFor();
  await page.close();
});

inBrowser(
  'what has the focus and goes away leaves the focus in its part, not at the top',
  async (t) => {
    const page = await house.open('/ops');
    await page.focus('.problems a');
    const before = await focused(page);
    await refreshed(page);
    t.is(await focused(page), before);
    await page.evaluate(
      `document.activeElement.closest('li').dataset.key = 'a problem that is over'`,
    );
    await refreshed(page);
    await refreshed(page);
    t.is(await focused(page), 'problems');
    await page.close();
  },
);

inBrowser('little is said aloud: what is urgent, and what somebody did', async (t) => {
  const page = await house.open('/ops');
  const live = await page.locator('[aria-live], [role=status], [role=alert]').count();
  t.is(live, 3);
  await refreshed(page);
  const spoken = await page.textContent('#spoken');
  await page.evaluate(`
    document.said = 0;
    new MutationObserver(() => { document.said += 1; })
      .observe(document.getElementById('spoken'), { childList: true, characterData: true, subtree: true });
  `);
  await refreshed(page);
  await refreshed(page);
  t.is(await page.evaluate('document.said'), 0, String(spoken));
  await page.close();
});

inBrowser(
  'held still, nothing moves; on a phone the menu opens and closes with keys',
  async (t) => {
    const page = await house.open('/ops/queues');
    await page.focus('#live');
    await page.keyboard.press('Enter');
    t.is(await page.textContent('#live'), 'Held still');
    const made = await page.textContent('#made');
    await addLetters(house.stack, 'analytics.rollup', 1);
    await eventually(t, async () => {
      const { items } = (await house.ops.get('/ops/api/queues')).data;
      return items.some(
        ({ job, dead }: { job: string; dead: number }) => job === 'analytics.rollup' && dead === 1,
      )
        ? true
        : undefined;
    });
    t.is(await page.textContent('#made'), made);
    await page.keyboard.press('Enter');
    await page.waitForSelector('tr:has-text("analytics.rollup") b.warn');
    await page.setViewportSize({ width: 390, height: 800 });
    t.false(await page.isVisible('#menu'));
    await page.focus('button.menu');
    await page.keyboard.press('Enter');
    t.true(await page.isVisible('#menu'));
    await page.keyboard.press('Tab');
    t.is(await focused(page), 'Overview');
    await page.keyboard.press('Escape');
    t.false(await page.isVisible('#menu'));
    t.is(await focused(page), 'Menu');
    await page.close();
    t.deepEqual(house.troubles, []);
  },
);

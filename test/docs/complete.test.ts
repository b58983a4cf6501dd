// Nothing without its documentation: error codes, limits, settings, event types, operations.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { eventNotes } from '../../api/docs/event-notes.ts';
import { limitTexts, windowText } from '../../api/docs/limits.ts';
import { groupOf } from '../../api/docs/settings.ts';
import { routes } from '../../api/routes.ts';
import { settings } from '../../lib/kernel/config.ts';
import { errorHelp } from '../../lib/kernel/error-help.ts';
import { errorCatalogue } from '../../lib/kernel/errors.ts';
import { admissionTable, readTable } from '../../lib/limits/table.ts';
import { failureReasons } from '../../lib/messages/rules.ts';
import { magicNumbers } from '../../lib/otp/sandbox.ts';
import { eventCatalogue } from '../../lib/webhooks/catalogue.ts';
import { markdownAt, pages } from './facts.ts';

const codes = Object.keys(errorCatalogue);
const root = join(import.meta.dirname, '../..');

test('every error code has a page: cause, what to do, whether a retry helps, how to meet it', (t) => {
  t.deepEqual(Object.keys(errorHelp), codes, 'the catalogue and its texts, in one order');
  const index = markdownAt('errors');
  for (const [code, { cause, fix, provoke = '' }] of Object.entries(errorHelp)) {
    const page = markdownAt(`errors/${code}`);
    t.true(cause.length > 20 && fix.length > 20, code);
    t.true(page.includes(cause) && page.includes(fix), code);
    t.regex(page, /## Does a retry help\?\n\n\*\*(Yes|No)/, code);
    const numbers = magicNumbers.filter((entry) => entry.code === code);
    t.true(numbers.length > 0 || provoke.length > 10, `${code}: no number and no other way`);
    t.false(numbers.length > 0 && provoke !== '', `${code}: its number is enough`);
    for (const { phone } of numbers) t.true(page.includes(phone), `${code} ${phone}`);
    t.true(index.includes(`(/docs/errors/${code})`), code);
  }
});

test('what may be repeated is one table, by what the catalogue says of each code', (t) => {
  const rows = markdownAt('idempotency').split('\n');
  for (const [code, { retry }] of Object.entries(errorCatalogue)) {
    const answers = { yes: /\| Yes, as it is/, after: /\| Yes, after/, no: /^$/ };
    const row = rows.find((line) => /\| Yes/.test(line) && line.includes(`/errors/${code})`)) ?? '';
    t.regex(row, answers[retry], code);
  }
  t.regex(markdownAt('idempotency'), /\| No: .*BILLING_ERROR.* though it is a 500/);
});

test('every reason for which a message fails is explained', (t) => {
  const page = markdownAt('resend-and-fallback');
  for (const [reason, meaning] of Object.entries(failureReasons)) {
    t.true(page.includes(`| \`${reason}\` | ${meaning} |`), reason);
  }
});

test('every limit is in the table, with a word on why', (t) => {
  const rows = [...admissionTable, ...readTable];
  t.deepEqual(Object.keys(limitTexts).sort(), rows.map(({ name }) => name).sort());
  const page = markdownAt('limits');
  for (const row of rows) {
    const bound = `${row.limit.toLocaleString('en-US')} in ${windowText(row.windowMs)}`;
    const line = page.split('\n').find((each) => each.includes(`| ${row.scope} | ${bound} |`));
    t.true(line?.includes(limitTexts[row.name] ?? '-'), row.name);
    t.true(line?.includes(`\`${row.dimension}\`, \`${row.reason}\``), row.name);
  }
});

test('windows read as people say them', (t) => {
  const said = [1_000, 30_000, 60_000, 600_000, 3_600_000, 86_400_000, 5 * 86_400_000];
  t.deepEqual(said.map(windowText), [
    ...['1 second', '30 seconds', '1 minute', '10 minutes', '1 hour', '24 hours', '5 days'],
  ]);
});

test('every setting stands under a heading of the settings page, with its text', (t) => {
  const page = markdownAt('settings');
  for (const { env, about } of Object.values(settings)) {
    t.truthy(groupOf(env), `${env} is under no heading: add it to settingGroups`);
    const line = page.split('\n').find((each) => each.startsWith(`| \`${env}\` |`));
    t.true(line?.includes(about.replaceAll('|', '\\|')), env);
  }
});

test('every event type that is published is explained, with a payload', (t) => {
  const source = readFileSync(join(root, 'lib/messages/events.ts'), 'utf8');
  const published = [...source.matchAll(/^ {2}\| '([a-z_]+\.[a-z_]+)'/gm)].map(([, type]) => type);
  t.true(published.length > 15);
  const documented = Object.keys(eventCatalogue).sort();
  t.deepEqual([...published, 'otp.completed'].sort() as (string | undefined)[], documented);
  t.deepEqual(Object.keys(eventNotes).sort(), documented);
  const page = markdownAt('webhooks');
  for (const [type, { summary }] of Object.entries(eventCatalogue)) {
    t.true(page.includes(`### ${type} {#`) && page.includes(`"type": "${type}"`), type);
    t.true(page.includes(summary), type);
    t.true(page.includes(eventNotes[type as keyof typeof eventNotes]), type);
  }
});

test('every operation has a page, and they are 75', (t) => {
  const operations = pages.filter(({ path }) => path.startsWith('api/'));
  t.is(operations.length, 75);
  t.is(routes.length, 75);
  for (const { method, path } of routes) {
    const page = operations.find(({ summary }) => summary === `${method} ${path}`);
    t.truthy(page, `${method} ${path}`);
    t.regex(page?.markdown ?? '', /## Example\n\n```sh\ncurl /, path);
    t.true(markdownAt('api').includes(`(/docs/${page?.path})`), path);
  }
});

test('every magic number is in the sandbox’s table', (t) => {
  for (const { phone, code } of magicNumbers) {
    t.true(markdownAt('sandbox').includes(`| \`${phone}\` |`), code);
  }
});

test('pages have a title, a summary and no part that was left out', (t) => {
  t.is(new Set(pages.map(({ path }) => path)).size, pages.length);
  for (const { path, title, summary, markdown } of pages) {
    t.true(title.length > 3 && summary.length > 8, path);
    t.notRegex(
      markdown.replace('{{playground}}', ''),
      /\{\{|undefined|\[object|\d\.\d{8}|^\| \|/m,
      path,
    );
  }
});

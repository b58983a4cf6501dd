// All pages of the documentation: those written by hand, with their generated parts filled in, and the generated ones.
import { readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { overviewRows } from './asvs.ts';
import { errorPages, retryRows } from './errors.ts';
import { eventExamples, eventRows, reasonRows, retryText } from './events.ts';
import { admissionRows, lockoutText, loginText, readRows, tierRows } from './limits.ts';
import { priceRows } from './money.ts';
import { operationsOf } from './operations.ts';
import { type Facts, type Page, table, urlOf } from './page.ts';
import { referencePages } from './reference.ts';
import { magicRows } from './sandbox.ts';
import { settingTables } from './settings.ts';

const folder = joinPath(import.meta.dirname, '../../docs');

/** The pages written by hand, in the order of the navigation: file name and heading. */
const written: readonly (readonly [path: string, section: string, label?: string])[] = [
  ['', 'Begin', 'Overview'],
  ['quickstart', 'Begin'],
  ['playground', 'Begin'],
  ['authentication', 'Begin'],
  ['sandbox', 'Begin', 'Sandbox'],
  ['resend-and-fallback', 'How it works'],
  ['idempotency', 'How it works'],
  ['totp', 'How it works'],
  ['webhooks', 'How it works'],
  ['limits', 'How it works'],
  ['pricing', 'How it works'],
  ['whatsapp', 'Going live'],
  ['telegram', 'Going live'],
  ['identity-servers', 'Going live'],
  ['self-hosting', 'Going live'],
  ['security', 'Going live'],
  ['settings', 'Reference'],
];

const titled = /^# (.+)\n\n([^\n]+)\n/;

const pageOf = ([path, section, label]: (typeof written)[number]): Page => {
  const source = readFileSync(joinPath(folder, `${path === '' ? 'index' : path}.md`), 'utf8');
  const [whole = '', title = '', summary = ''] = titled.exec(source) ?? [];
  return {
    ...{ path, section, title, summary },
    ...(label === undefined ? {} : { label }),
    markdown: `${summary}\n\n${source.slice(whole.length).trim()}`,
  };
};

const startTable = (pages: readonly Page[]): string =>
  table(
    ['Page', 'What for'],
    pages
      .filter(({ path }) => path !== '')
      .map(({ path, title, summary }) => [`[${title}](${urlOf(path)})`, summary]),
  );

const partsFor = (facts: Facts, pages: readonly Page[]): Record<string, () => string> => ({
  start_table: () => startTable(pages),
  magic_table: magicRows,
  admission_table: admissionRows,
  read_table: readRows,
  tier_table: tierRows,
  lockout: lockoutText,
  login_limits: loginText,
  price_table: () => priceRows(facts),
  event_table: () => eventRows(facts.openapi),
  event_examples: () => eventExamples(facts.openapi),
  retry_schedule: retryText,
  retry_table: retryRows,
  failure_reasons: reasonRows,
  settings_tables: settingTables,
  asvs_overview: () => overviewRows(pages.find(({ path }) => path === 'security')?.markdown ?? ''),
});

/** Pages whose place is filled in later, as HTML. */
export const playgroundPlace = '{{playground}}';

const fill = (markdown: string, parts: Record<string, () => string>): string =>
  markdown.replace(/\{\{(\w+)\}\}/g, (place, name: string) => {
    if (place === playgroundPlace) return place;
    const part = parts[name];
    if (!part) throw new Error(`the documentation has no part named ${name}`);
    return part();
  });

/** Every page, in the order of the navigation; those without a place in it last. */
export const composePages = (facts: Facts): Page[] => {
  const byHand = written.map(pageOf);
  const operations = operationsOf(facts.openapi).map(({ title, page, errors }) => ({
    ...{ title, path: page, errors },
  }));
  const made = [...referencePages(facts.openapi), ...errorPages(operations)];
  const parts = partsFor(facts, byHand);
  const filled = byHand.map((page) => ({ ...page, markdown: fill(page.markdown, parts) }));
  const all = [...filled, ...made];
  return [
    ...all.filter(({ section }) => section !== undefined && section !== 'Reference'),
    ...all.filter(({ section }) => section === 'Reference'),
    ...all.filter(({ section }) => section === undefined),
  ];
};

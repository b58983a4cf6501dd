// From pages to files: HTML, Markdown, the search index, the assets, and the index for machines; each compressed once.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { composePages, playgroundPlace } from './compose.ts';
import { type AssetUrls, htmlOf, type NavigationGroup } from './layout.ts';
import { createMarkdown } from './markdown.ts';
import { exampleUrl, type Facts, markdownUrlOf, type Page, urlOf } from './page.ts';
import { playgroundForm, turnstileScript } from './playground.ts';
import { searchIndexOf } from './search-index.ts';

export type File = {
  url: string;
  type: string;
  etag: string;
  /** Whether its address changes with its content. */
  immutable: boolean;
  /** Origins its scripts and frames may come from beside our own. */
  origin: string | null;
  gzip: Buffer;
};

const types: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
};

const hashOf = (content: string): string =>
  createHash('sha256').update(content).digest('base64url').slice(0, 16);

const fileOf = (
  url: string,
  type: string,
  content: string,
  more: Partial<Pick<File, 'immutable' | 'origin'>> = {},
): File => ({
  ...{ url, type, etag: `"${hashOf(content)}"`, immutable: false, origin: null },
  gzip: gzipSync(content, { level: 9 }),
  ...more,
});

const assetFile = (name: string, content: string): File => {
  const [stem = '', ending = ''] = name.split(/\.(?=\w+$)/);
  const url = `/docs/assets/${stem}.${hashOf(content)}.${ending}`;
  return fileOf(url, types[ending] ?? 'text/plain', content, { immutable: true });
};

const scripts = ['docs.js', 'theme.js', 'playground.js', 'mark.svg'];
const styles = ['base.css', 'frame.css', 'playground.css'];

const readAsset = (name: string): string =>
  readFileSync(join(import.meta.dirname, 'assets', name), 'utf8');

const readEngine = (): string => {
  const commonJs = createRequire(import.meta.url).resolve('minisearch');
  return readFileSync(commonJs.replace('/cjs/index.cjs', '/es/index.js'), 'utf8');
};

const readAssets = (): Map<string, File> => {
  const contents: [string, string][] = [
    ...scripts.map((name): [string, string] => [name, readAsset(name)]),
    ['docs.css', styles.map(readAsset).join('\n')],
    // Its map is not served.
    ['minisearch.js', readEngine().replace(/\/\/# sourceMappingURL.*/, '')],
  ];
  return new Map(contents.map(([name, content]) => [name, assetFile(name, content)]));
};

const groupsOf = (pages: readonly Page[]): NavigationGroup[] =>
  [
    ...Map.groupBy(
      pages.filter(({ section }) => section),
      ({ section }) => section ?? '',
    ),
  ].map(([title, group]) => ({
    title,
    links: group.map(({ path, title: name, label }) => ({
      url: urlOf(path),
      label: label ?? name,
    })),
  }));

const machineIndex = (pages: readonly Page[]): string => {
  const line = ({ path, title, summary }: Page) =>
    `- [${title}](${markdownUrlOf(path)}): ${summary}`;
  const of = (matches: (page: Page) => boolean) => pages.filter(matches).map(line).join('\n');
  return [
    '# Tessera',
    '> Self-hosted phone verification: one-time codes over WhatsApp and Telegram, TOTP, prepaid billing, signed webhooks. Every call is described by /openapi.json.',
    `Examples name ${exampleUrl}: put the address of the server you read this from in its place.`,
    `## Guides\n\n${of(({ section }) => section !== undefined)}`,
    `## Calls\n\n${of(({ section, path }) => section === undefined && path.startsWith('api/'))}`,
    `## Errors\n\n${of(({ section, path }) => section === undefined && path.startsWith('errors/'))}`,
    '',
  ].join('\n\n');
};

/** Ids that headings were given by hand: the pages read them, Markdown has no such thing. */
const headingNames = /(?<=^#+ .*)\s*\{#[\w-]+\}$/gm;

const markdownFile = (page: Page): File => {
  const text = page.markdown
    .replace(headingNames, '')
    .replace(playgroundPlace, 'The form is at [/docs/playground](/docs/playground).');
  return fileOf(
    markdownUrlOf(page.path),
    'text/markdown; charset=utf-8',
    `# ${page.title}\n\n${text}\n`,
  );
};

const missing: Page = {
  ...{ path: '404', title: 'There is no such page', section: undefined },
  summary: 'Nothing is here.',
  markdown:
    'It may have moved. The [overview](/docs) lists what there is, and the search above finds the rest.',
};

/** Where the page for unknown addresses is kept. */
export const missingUrl = urlOf(missing.path);

/** Every file of the site. */
export const renderSite = (facts: Facts): File[] => {
  const pages = composePages(facts);
  const assets = readAssets();
  const index = assetFile('search.json', searchIndexOf(pages));
  const urls: AssetUrls = Object.fromEntries([...assets].map(([name, { url }]) => [name, url]));
  const groups = groupsOf(pages);
  const inOrder = pages.filter(({ section }) => section !== undefined);
  const markdown = createMarkdown();
  const bot = turnstileScript(facts);

  const pageFile = (page: Page): File => {
    const rendered = markdown(page.markdown);
    const place = `<p>${playgroundPlace}</p>`;
    const tries = rendered.html.includes(place);
    const html = rendered.html.replace(place, () => playgroundForm(facts));
    const at = inOrder.indexOf(page);
    const body = htmlOf(
      page,
      { ...rendered, html },
      {
        ...{ assets: urls, groups, searchIndex: index.url },
        scripts: tries ? [urls['playground.js'] ?? ''] : [],
        foreignScript: tries ? bot : undefined,
        before: at > 0 ? inOrder[at - 1] : undefined,
        after: at >= 0 ? inOrder[at + 1] : undefined,
      },
    );
    const origin = tries && bot ? new URL(bot).origin : null;
    return fileOf(urlOf(page.path), 'text/html; charset=utf-8', body, { origin });
  };

  return [
    ...[...pages, missing].map(pageFile),
    ...[...pages, missing].map(markdownFile),
    fileOf('/docs/llms.txt', 'text/plain; charset=utf-8', machineIndex(pages)),
    ...[...assets.values(), index],
  ];
};

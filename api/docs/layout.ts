// The HTML around a page: navigation, contents, and what a browser is told.
import { escapeHtml } from './highlight.ts';
import type { Heading, Rendered } from './markdown.ts';
import { markdownUrlOf, type Page, urlOf } from './page.ts';

/** Where the assets are, by their plain names; addresses carry a hash of the content. */
export type AssetUrls = Record<string, string>;

export type NavigationGroup = { title: string; links: { url: string; label: string }[] };

const link = (current: string, { url, label }: { url: string; label: string }): string =>
  `<li><a href="${url}"${url === current ? ' aria-current="true"' : ''}>${escapeHtml(label)}</a></li>`;

const navigation = (
  groups: readonly NavigationGroup[],
  { current, prefix }: { current: string; prefix: string },
): string =>
  groups
    .map(({ title, links }, index) => {
      const id = `${prefix}-${index}`;
      return `<p class="nav-title" id="${id}">${escapeHtml(title)}</p><ul aria-labelledby="${id}">${links.map((each) => link(current, each)).join('')}</ul>`;
    })
    .join('');

const contents = (headings: readonly Heading[]): string => {
  const shown = headings.filter(({ level }) => level === 2);
  if (shown.length < 3) return '';
  const items = shown.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`);
  return `<nav class="contents" aria-label="On this page"><p class="nav-title">On this page</p><ul>${items.join('')}</ul></nav>`;
};

/** The mark: a token with its notch. */
const mark =
  '<svg class="mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true"><path d="M4 2h16a2 2 0 0 1 2 2v6.5a1.5 1.5 0 0 0 0 3V20a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2v-6.5a1.5 1.5 0 0 0 0-3V4a2 2 0 0 1 2-2Z"/><path class="mark-cut" d="M7 7h10v2.4h-3.7V17h-2.6V9.4H7Z"/></svg>';

const neighbours = (before: Page | undefined, after: Page | undefined): string => {
  const to = (page: Page | undefined, rel: string, word: string): string =>
    page
      ? `<a rel="${rel}" href="${urlOf(page.path)}"><span>${word}</span>${escapeHtml(page.title)}</a>`
      : '<span></span>';
  if (!before && !after) return '';
  return `<nav class="neighbours" aria-label="Neighbouring pages">${to(before, 'prev', 'Before')}${to(after, 'next', 'Next')}</nav>`;
};

const trail = ({ parent }: Page): string =>
  parent
    ? `<nav class="trail" aria-label="Breadcrumb"><a href="${urlOf(parent.path)}">${escapeHtml(parent.title)}</a></nav>`
    : '';

export type Shell = {
  assets: AssetUrls;
  groups: readonly NavigationGroup[];
  searchIndex: string;
  /** Further scripts of this page. */
  scripts: readonly string[];
  /** A script of somebody else's that this page needs. */
  foreignScript: string | undefined;
  before: Page | undefined;
  after: Page | undefined;
};

const head = (page: Page, { assets, scripts, foreignScript }: Shell): string =>
  [
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escapeHtml(page.path === '' ? page.title : `${page.title} · Tessera`)}</title>`,
    `<meta name="description" content="${escapeHtml(page.summary)}">`,
    `<link rel="icon" href="${assets['mark.svg']}" type="image/svg+xml">`,
    `<link rel="stylesheet" href="${assets['docs.css']}">`,
    `<link rel="alternate" type="text/markdown" href="${markdownUrlOf(page.path)}">`,
    // Not deferred: it sets the colours before anything is painted.
    `<script src="${assets['theme.js']}"></script>`,
    ...[assets['docs.js'] ?? '', ...scripts].map(
      (url) => `<script type="module" src="${url}"></script>`,
    ),
    // No module: those are fetched with CORS, and do not know their own element.
    ...(foreignScript ? [`<script src="${foreignScript}" async defer></script>`] : []),
  ].join('');

const top = ({ assets, searchIndex }: Shell): string =>
  `<header class="top"><a class="brand" href="/docs">${mark}<span>Tessera</span><small>docs</small></a><button type="button" class="search-open" data-index="${searchIndex}" data-engine="${assets['minisearch.js']}" hidden><span>Search</span><kbd>/</kbd></button><button type="button" class="theme" hidden>Theme</button></header>`;

/** A whole page. */
export const htmlOf = (page: Page, { html, headings }: Rendered, shell: Shell): string => {
  const { groups, before, after } = shell;
  const current = urlOf(page.parent?.path ?? page.path);
  const menu = (prefix: string) => navigation(groups, { current, prefix });
  return [
    `<!doctype html><html lang="en"><head>${head(page, shell)}</head><body>`,
    '<a class="skip" href="#content">Skip to content</a>',
    top(shell),
    `<div class="frame"><details class="menu"><summary>Menu</summary><nav aria-label="Menu">${menu('menu')}</nav></details>`,
    `<nav class="side" aria-label="Pages">${menu('side')}</nav>`,
    `<main id="content" tabindex="-1">${trail(page)}<h1>${escapeHtml(page.title)}</h1>${html}`,
    `${neighbours(before, after)}<footer><a href="${markdownUrlOf(page.path)}">This page as Markdown</a><a href="/docs/llms.txt">All pages</a><a href="/openapi.json">OpenAPI</a></footer></main>`,
    `${contents(headings)}</div></body></html>`,
  ].join('');
};

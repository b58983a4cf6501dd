// The search: an index made with the pages, which the browser loads when somebody searches.
import MiniSearch from 'minisearch';
import { type Page, urlOf } from './page.ts';

/** What the browser must create its index with, too (assets/docs.js). */
const options = { fields: ['title', 'summary', 'text'], storeFields: ['title', 'summary'] };

const plain = (markdown: string): string =>
  markdown
    .replace(/```[^\n]*\n|```/g, ' ')
    .replace(/\]\([^)]*\)/g, ' ')
    .replace(/[|*#>[\]{}"]/g, ' ');

type Entry = { id: string; title: string; summary: string; text: string };

/** Parts with an id of their own are found by their headings, such as the types of events. */
const partsOf = ({ path, title, markdown }: Page): Entry[] =>
  [...markdown.matchAll(/^#+ (.*?)\s*\{#([\w-]+)\}$/gm)].map(([, part = '', anchor]) => ({
    ...{ id: `${urlOf(path)}#${anchor}`, title: part, summary: title, text: '' },
  }));

/** The index as JSON. Tables and examples repeat words, so each is taken once per page. */
export const searchIndexOf = (pages: readonly Page[]): string => {
  const index = new MiniSearch(options);
  index.addAll(
    pages.flatMap((page): Entry[] => {
      const { path, title, summary, markdown } = page;
      const text = [...new Set(plain(markdown).split(/\s+/))].join(' ');
      return [{ id: urlOf(path), title, summary, text }, ...partsOf(page)];
    }),
  );
  return JSON.stringify(index);
};

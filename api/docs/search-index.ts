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

const wordsMax = 400;

/** The index as JSON. Tables and examples repeat words, so each is taken once per page. */
export const searchIndexOf = (pages: readonly Page[]): string => {
  const index = new MiniSearch(options);
  index.addAll(
    pages.map(({ path, title, summary, markdown }) => ({
      ...{ id: urlOf(path), title, summary },
      text: [...new Set(plain(markdown).split(/\s+/))].slice(0, wordsMax).join(' '),
    })),
  );
  return JSON.stringify(index);
};

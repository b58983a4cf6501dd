// From Markdown to the HTML of a page's body: headings that can be linked to, code with colours, tables that scroll.
import MarkdownIt from 'markdown-it';
import { escapeHtml, highlight } from './highlight.ts';

export type Heading = { level: number; id: string; text: string };
export type Rendered = { html: string; headings: Heading[] };

const named = /\s*\{#([\w-]+)\}$/;

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

const labels: Record<string, string> = {
  sh: 'Shell',
  json: 'JSON',
  js: 'JavaScript',
  http: 'HTTP',
};

const fence = (content: string, language: string): string => {
  const name = labels[language] ?? 'Text';
  const body = highlight(content.trimEnd(), language);
  return `<figure class="code code-${escapeHtml(language)}"><figcaption>${name}<button type="button" class="copy" hidden>Copy</button></figcaption><pre tabindex="0" aria-label="${name}"><code>${body}</code></pre></figure>\n`;
};

type Token = ReturnType<InstanceType<typeof MarkdownIt>['parse']>[number];

/** Gives headings their ids, and takes written ones out of the text. */
const nameHeadings = (tokens: Token[]): Heading[] =>
  tokens.flatMap((token, index) => {
    const inline = tokens[index + 1];
    if (token.type !== 'heading_open' || !inline) return [];
    const written = named.exec(inline.content)?.[1];
    const last = inline.children?.at(-1);
    if (last) last.content = last.content.replace(named, '');
    const text = inline.content.replace(named, '').replace(/[`*]/g, '');
    const id = written ?? slug(text);
    token.attrSet('id', id);
    return [{ level: Number(token.tag.slice(1)), id, text }];
  });

const roles: Record<string, string> = {
  thead_open: 'rowgroup',
  tbody_open: 'rowgroup',
  tr_open: 'row',
  th_open: 'columnheader',
  td_open: 'cell',
};

/** Tells each cell its column's name: on a phone the rows are stacked, which takes the roles away from them, too. */
const nameCells = (tokens: Token[]): void => {
  let names: string[] = [];
  let column = 0;
  tokens.forEach((token, index) => {
    const role = roles[token.type];
    if (role) token.attrSet('role', role);
    if (token.type === 'table_open') names = [];
    if (token.type === 'tr_open') column = 0;
    if (token.type === 'th_open')
      names.push((tokens[index + 1]?.content ?? '').replaceAll('`', ''));
    if (token.type === 'td_open') token.attrSet('data-label', names[column++] ?? '');
  });
};

/** A renderer; nothing of the text is taken for HTML. */
export const createMarkdown = () => {
  const markdown = new MarkdownIt({ html: false, linkify: false });
  markdown.renderer.rules.fence = (tokens, index) => {
    const { content = '', info = '' } = tokens[index] ?? {};
    return fence(content, info.split(' ')[0] ?? '');
  };
  markdown.renderer.rules.table_open = () =>
    '<div class="table" role="region" aria-label="Table" tabindex="0"><table role="table">';
  markdown.renderer.rules.table_close = () => '</table></div>';
  markdown.renderer.rules.heading_close = (tokens, index) => {
    const open = tokens[index - 2];
    const id = open?.attrGet('id') ?? '';
    const link = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
    return `${link}</${tokens[index]?.tag ?? 'h2'}>\n`;
  };
  return (source: string): Rendered => {
    const tokens = markdown.parse(source, {});
    nameCells(tokens);
    const headings = nameHeadings(tokens);
    return { html: markdown.renderer.render(tokens, markdown.options, {}), headings };
  };
};

// HTML as a value: whatever is put into a template is escaped, unless it was made by a template itself.

const made = Symbol('html');

export type Html = { readonly [made]: string };

export type Content = Html | string | number | false | null | undefined | readonly Content[];

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? '');

const textOf = (content: Content): string => {
  if (content === null || content === undefined || content === false) return '';
  if (typeof content === 'string') return escaped(content);
  if (typeof content === 'number') return String(content);
  return made in content ? content[made] : content.map(textOf).join('');
};

/** A piece of a page. Values stand between tags or inside quoted attributes, nowhere else. */
export const html = (strings: TemplateStringsArray, ...values: Content[]): Html => ({
  [made]: String.raw({ raw: strings }, ...values.map(textOf)),
});

/** The text of a piece. */
export const render = (content: Html): string => content[made];

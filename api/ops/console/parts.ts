// Parts of pages that come again: tables that become cards on a phone, badges, forms, fields.
import { type Content, type Html, html } from './html.ts';

export type Tone = 'bad' | 'warn' | 'good' | 'plain';

/** A state in a word; the tone repeats it in colour. */
export const badge = (tone: Tone, text: string): Html =>
  html`<span class="badge ${tone}">${text}</span>`;

export type Column<T> = {
  head: string;
  cell: (row: T) => Content;
  /** Figures stand on the right, under each other. */
  figures?: boolean;
  /** The cell names the row. */
  names?: boolean;
  /** A class of the cells. */
  as?: string;
};

const cellOf = <T>({ head, cell, figures, names, as }: Column<T>, row: T): Html => {
  const kind = [figures && 'n', as].filter(Boolean).join(' ');
  return names
    ? html`<th scope="row" role="rowheader" class="${kind}">${cell(row)}</th>`
    : html`<td role="cell" class="${kind}" data-head="${head}">${cell(row)}</td>`;
};

/**
 * A table with a caption for those who cannot see it. Roles are said aloud: as cards on a phone it would lose them
 * in some browsers. `idOf` keeps rows apart when the page refreshes itself.
 */
export const table = <T>(
  caption: string,
  columns: readonly Column<T>[],
  rows: readonly T[],
  idOf?: (row: T) => string,
): Html => html`<div class="scroll" role="region" aria-label="${caption}"><table role="table">
<caption class="quiet">${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map(
  ({ head, figures }) =>
    html`<th scope="col" role="columnheader" class="${figures ? 'n' : ''}">${head}</th>`,
)}</tr></thead>
<tbody role="rowgroup">${rows.map(
  (row) =>
    html`<tr role="row" data-key="${idOf?.(row) ?? ''}">${columns.map((column) => cellOf(column, row))}</tr>`,
)}</tbody></table></div>`;

/** A form that changes something: it carries the word that proves it is ours. `key` tells it from another to the same address. */
export const actionForm = (
  csrf: string | undefined,
  action: string,
  content: Content,
  key = action,
): Html =>
  html`<form method="post" action="${action}" class="line" data-key="${key}"><input type="hidden" name="csrf" value="${csrf ?? ''}">${content}</form>`;

/** A button that asks before it does something; `{name}` in the question is what the field of that name holds. */
export const askingButton = (
  text: Content,
  { ask, yes, as = '' }: { ask: string; yes: string; as?: string },
): Html => html`<button class="${as}" data-ask="${ask}" data-yes="${yes}">${text}</button>`;

/** A labelled field; `control` is the input itself. */
export const field = (label: string, control: Html, hint?: Content): Html =>
  html`<label class="field"><span>${label}</span>${control}${hint === undefined ? '' : html`<small>${hint}</small>`}</label>`;

export type Option = { value: string; text: string };

export const select = (name: string, options: readonly Option[], chosen?: string): Html =>
  html`<select name="${name}">${options.map(({ value, text }) =>
    value === chosen
      ? html`<option value="${value}" selected>${text}</option>`
      : html`<option value="${value}">${text}</option>`,
  )}</select>`;

/** Pairs of a term and what is known of it. */
export const facts = (pairs: readonly (readonly [string, Content])[]): Html =>
  html`<dl class="facts">${pairs.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>`;

/** A name as somebody gave it, in whatever direction it is written. */
export const named = (text: string): Html => html`<bdi class="name">${text}</bdi>`;

/** Links to the newest and the older part of a long list. */
export const pages = (newest: string | undefined, older: string | undefined): Html | '' =>
  newest === undefined && older === undefined
    ? ''
    : html`<nav class="pages" aria-label="Parts of the list">${newest && html`<a href="${newest}">Newest</a>`}${older && html`<a href="${older}" rel="next">Older</a>`}</nav>`;

export const emptyNote = (text: string): Html => html`<p class="empty">${text}</p>`;

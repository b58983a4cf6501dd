// The dead letters of a job as a list to tick, and the forms that give them back to work or throw them away.
import { invalid } from '../../../../lib/kernel/errors.ts';
import { type deadLetters, purgeLetters, redriveLetters } from '../../routes/dead.ts';
import { count, duration, moment } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, type Visit } from '../page.ts';
import { field, table } from '../parts.ts';
import { amountOf } from './account-forms.ts';

export type Dead = Awaited<ReturnType<typeof deadLetters.handle>>;
type Letter = Dead['items'][number];

const perPage = 50;

const errors = (one: Letter): Html =>
  html`<span class="long">${one.first_error ?? '–'}</span>${
    one.last_error && one.last_error !== one.first_error
      ? html`<span class="long"><small>Last: ${one.last_error}</small></span>`
      : ''
  }`;

const more = (one: Letter): Html =>
  html`<details><summary>Show<span class="quiet"> the payload of letter ${one.id}</span></summary><pre>${JSON.stringify(one.payload, null, 2)}</pre><dl class="small">
<div><dt>First published</dt><dd>${moment(one.first_published_at)}</dd></div>
<div><dt>First failed</dt><dd>${moment(one.first_failed_at)}</dd></div>
<div><dt>Given up</dt><dd>${moment(one.dead_at)}${one.by_broker && ', by the broker'}</dd></div>
<div><dt>Taken from</dt><dd>${one.queue ?? '–'}</dd></div>
<div><dt>Request</dt><dd class="mono">${one.request_id ?? '–'}</dd></div></dl></details>`;

const letterTable = (items: readonly Letter[]): Html =>
  table(
    'Dead letters, oldest first',
    [
      {
        ...{ head: 'Pick', as: 'tick' },
        cell: ({ id, reason }) =>
          html`<label class="tick"><input type="checkbox" name="id" value="${id}"><span class="quiet">Letter ${id}, ${reason}</span></label>`,
      },
      { head: 'Reason', names: true, cell: ({ reason }) => reason },
      { head: 'Attempts', figures: true, cell: ({ attempts }) => count(attempts) },
      { ...{ head: 'Errors', as: 'wide' }, cell: errors },
      {
        ...{ head: 'Dead for', figures: true },
        cell: ({ age_ms: age }) => (age === null ? '–' : duration(age)),
      },
      { ...{ head: 'Payload', as: 'wide' }, cell: more },
    ],
    items,
    ({ id }) => id,
  );

const pager = (job: string, given: { reason: string; page: number; there: number }): Html | '' => {
  const { reason, page, there } = given;
  const last = Math.ceil(there / perPage);
  if (last < 2) return '';
  const to = (n: number): string =>
    `/ops/dead/${job}?${new URLSearchParams({ ...(reason ? { reason } : {}), page: String(n) })}`;
  const from = (page - 1) * perPage + 1;
  return html`<nav class="pages" aria-label="Parts of the list">${page > 1 && html`<a href="${to(page - 1)}" rel="prev">Older ones</a>`}<span>${count(from)} to ${count(Math.min(there, page * perPage))} of ${count(there)}</span>${page < last && html`<a href="${to(page + 1)}" rel="next">Newer ones</a>`}</nav>`;
};

/** How many an order over all of them is about, as far as anybody knows. */
const allOf = ({ total, reasons, scanned }: Dead, reason: string): string => {
  if (reason === '') return count(total);
  return `${count(reasons[reason] ?? 0)}${scanned < total ? ' or more' : ''}`;
};

const because = (reason: string): string => (reason === '' ? '' : ` with the reason ${reason}`);

/** The list with its orders; `page` counts from 1. */
export const letterForm = (
  dead: Dead,
  given: { reason: string; page: number; csrf: string | undefined },
): Html => {
  const { reason, csrf } = given;
  const { job, items } = dead;
  const page = Math.min(given.page, Math.max(1, Math.ceil(items.length / perPage)));
  const shown = items.slice((page - 1) * perPage, page * perPage);
  const all = allOf(dead, reason);
  const to = `/ops/dead/${job}`;
  const picked = html`<span data-ticked>0</span>`;
  return html`<form method="post" action="${to}/redrive" data-ticks data-key="letters"><input type="hidden" name="csrf" value="${csrf ?? ''}"><input type="hidden" name="reason" value="${reason}">
<div class="bar">${field('Redrive, a second', html`<input name="per_second" type="number" min="1" max="5000" value="200" required>`)}
<button name="which" value="picked">Redrive picked (${picked})</button>
<button name="which" value="all" class="main" data-ask="Redrive ${all} of ${job}${because(reason)}, {per_second} a second?" data-yes="Redrive">Redrive all ${all}</button>
<label class="tick"><input type="checkbox" id="every" autocomplete="off"> Pick all shown</label></div>
${letterTable(shown)}${pager(job, { reason, page, there: items.length })}${
  items.length < dead.total && reason === ''
    ? html`<p class="note">The oldest ${count(items.length)} can be looked at; orders over all reach the others too.</p>`
    : ''
}
<details class="danger" data-key="purge"><summary>Throw away</summary><p>What is thrown away is gone: these jobs are never done.</p>
<div class="bar">${field(`Type ${job} to confirm`, html`<input name="confirm" autocomplete="off" autocapitalize="off" spellcheck="false">`)}
<button name="which" value="picked" class="danger" formaction="${to}/purge">Purge picked (${picked})</button>
<button name="which" value="all" class="danger" formaction="${to}/purge">Purge all ${all}</button></div></details></form>`;
};

const jobOf = ({ params }: Visit): string => params.job ?? '';

const pageOf = (visit: Visit, form: URLSearchParams): string => {
  const reason = form.get('reason');
  return `/ops/dead/${jobOf(visit)}${reason ? `?reason=${encodeURIComponent(reason)}` : ''}`;
};

const chosen = (form: URLSearchParams) => {
  const ids = form.getAll('id');
  const picks = form.get('which') !== 'all';
  if (picks && ids.length === 0) {
    throw invalid({ field: 'ids', issue: 'pick at least one letter in the list first' });
  }
  return {
    ...(picks ? { ids } : {}),
    ...(form.get('reason') ? { reason: form.get('reason') } : {}),
  };
};

const redriveForm = consoleForm({
  path: '/ops/dead/{job}/redrive',
  summary: 'Gives dead letters back to work.',
  from: pageOf,
  submit: async (visit, form) => {
    // Enter in the field that confirms a purge presses the first button of the form, which is this one.
    if (form.get('confirm')) {
      throw invalid({ field: 'confirm', issue: 'is for throwing away: press one of its buttons' });
    }
    const perSecond = amountOf(form, 'per_second');
    const body = { ...chosen(form), per_second: perSecond };
    await visit.run(redriveLetters, { params: { job: jobOf(visit) }, body });
    return { said: `Redriving, ${count(perSecond)} a second at most.`, to: pageOf(visit, form) };
  },
});

const purgeForm = consoleForm({
  path: '/ops/dead/{job}/purge',
  summary: 'Throws dead letters away.',
  from: pageOf,
  submit: async (visit, form) => {
    const body = { ...chosen(form), confirm: form.get('confirm') || ' ' };
    await visit.run(purgeLetters, { params: { job: jobOf(visit) }, body });
    return { said: 'Throwing them away.', to: pageOf(visit, form) };
  },
});

export const letterForms = [redriveForm, purgeForm];

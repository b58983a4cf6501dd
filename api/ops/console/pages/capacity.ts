// Requests for more capacity that wait for a word.
import { pendingCapacity, reviewOne } from '../../routes/accounts.ts';
import { count, moment } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import { actionForm, askingButton, emptyNote, facts, field, named } from '../parts.ts';
import { section } from '../section.ts';
import { amountOf } from './account-forms.ts';

type Request = Awaited<ReturnType<typeof pendingCapacity.handle>>['items'][number];

const view = (one: Request, csrf: string | undefined): Html => {
  const to = `/ops/capacity/${one.account_id}/${one.id}`;
  const note = field('Note', html`<input name="note" maxlength="500" autocomplete="off">`);
  return html`<article data-key="${one.id}"><h2><a class="mono" href="/ops/accounts/${one.account_id}">Account ${one.account_id}</a></h2>
${facts([
  ['Asked for, sends a minute', count(one.requested_sustained_per_minute)],
  ['Expected, a minute', count(one.expected_sustained_per_minute)],
  ['Expected peak, a minute', count(one.expected_peak_per_minute)],
  ['Why', named(one.business_justification)],
  ['Since', moment(one.created_at)],
])}
${actionForm(
  csrf,
  to,
  html`${field('Grant, sends a minute', html`<input name="per_minute" type="number" min="301" value="${one.requested_sustained_per_minute}" required>`)}${note}<input type="hidden" name="word" value="grant"><button class="main">Approve</button>`,
  `approve ${one.id}`,
)}${actionForm(
  csrf,
  to,
  html`${note}<input type="hidden" name="word" value="reject">${askingButton('Reject', { ask: 'Reject this request? The customer is told.', yes: 'Reject', as: 'danger' })}`,
  `reject ${one.id}`,
)}</article>`;
};

const body = async ({ run, caller }: Visit): Promise<Html> =>
  section(
    'The requests',
    () => run(pendingCapacity),
    ({ items, more }) =>
      items.length === 0
        ? emptyNote('No request waits for a review.')
        : html`${items.map((one) => view(one, caller.csrf))}${more ? html`<p>These are the oldest; the others follow when some of them are decided.</p>` : ''}`,
  );

export const capacityPage = opsPage({
  ...{ path: '/ops/capacity', menu: '/ops/capacity', title: 'Capacity requests' },
  ...{ everySeconds: 10, body },
});

const review = consoleForm({
  path: '/ops/capacity/{id}/{request}',
  summary: 'A word on a request for capacity.',
  from: () => '/ops/capacity',
  submit: async ({ run, params }, form) => {
    const rejects = form.get('word') === 'reject';
    const note = (form.get('note') ?? '').trim();
    const perMinute = rejects ? null : amountOf(form, 'per_minute');
    await run(reviewOne, {
      params: { id: params.id ?? '', request: params.request ?? '' },
      body: { per_minute: perMinute, note: note === '' ? null : note },
    });
    return {
      said: rejects ? 'Rejected.' : `Approved: ${count(perMinute ?? 0)} sends a minute.`,
      to: '/ops/capacity',
    };
  },
});

export const capacityForms = [review];

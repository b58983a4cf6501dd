// Dead letters: which jobs have some, why, and giving them back to work or throwing them away.
import { auditLog } from '../../routes/audit.ts';
import { deadLetters, purgeLetters, redriveLetters, stopRun } from '../../routes/dead.ts';
import { queuesNow } from '../../routes/queues.ts';
import { count, counted, duration, moment } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import { actionForm, badge, emptyNote, field, select, table } from '../parts.ts';
import { section } from '../section.ts';

type Dead = Awaited<ReturnType<typeof deadLetters.handle>>;
type Letter = Dead['items'][number];
type Run = Awaited<ReturnType<typeof auditLog.handle>>['items'][number];

export const deadPage = opsPage({
  ...{ path: '/ops/dead', menu: '/ops/dead', title: 'Dead letters', everySeconds: 3 },
  body: async ({
    run,
  }) => html`<p>A dead letter is a job that was given up. Nothing throws it away but you.</p>
<section id="all" data-live>${await section(
    'The dead letters',
    () => run(queuesNow),
    ({ items }) => {
      const some = items.filter(({ dead }) => dead > 0);
      if (some.length === 0) return emptyNote('There are no dead letters.');
      return table(
        'Jobs with dead letters',
        [
          {
            ...{ head: 'Job', names: true },
            cell: ({ job }) => html`<a href="/ops/dead/${job}">${job}</a>`,
          },
          { head: 'Dead letters', figures: true, cell: ({ dead }) => count(dead) },
        ],
        some,
        ({ job }) => job,
      );
    },
  )}</section>`,
});

const letterTable = (items: readonly Letter[]): Html =>
  table(
    'Dead letters, oldest first',
    [
      {
        head: 'Pick',
        cell: ({ id }) =>
          html`<input type="checkbox" name="id" value="${id}" aria-label="Letter ${id}">`,
      },
      { head: 'Reason', names: true, cell: ({ reason }) => reason },
      { head: 'Attempts', figures: true, cell: ({ attempts }) => count(attempts) },
      {
        ...{ head: 'Errors', as: 'wide' },
        cell: (one) =>
          html`${one.first_error ?? '–'}${
            one.last_error && one.last_error !== one.first_error
              ? html`<br><small>last: ${one.last_error}</small>`
              : ''
          }`,
      },
      {
        ...{ head: 'Age', figures: true },
        cell: ({ age_ms: age }) => (age === null ? '–' : duration(age)),
      },
      {
        ...{ head: 'Payload', as: 'wide' },
        cell: ({ payload, request_id: request }) =>
          html`<details><summary>Show</summary><pre>${JSON.stringify(payload, null, 2)}</pre><small>request ${request ?? '–'}</small></details>`,
      },
    ],
    items,
    ({ id }) => id,
  );

const reasonOptions = ({ reasons }: Dead) => [
  { value: '', text: 'for any reason' },
  ...Object.entries(reasons).map(([reason, n]) => ({ value: reason, text: `${reason} (${n})` })),
];

const orders = (dead: Dead, csrf: string | undefined): Html => {
  const rate = field(
    'A second',
    html`<input name="per_second" type="number" min="1" max="5000" value="200" required>`,
  );
  const which = html`<fieldset class="line"><legend>Which</legend>
<label><input type="radio" name="which" value="all" checked> all</label>
<label><input type="radio" name="which" value="picked"> picked <span data-ticked></span></label>
${select('reason', reasonOptions(dead))}</fieldset>`;
  const form = html`<div class="line">${which}${rate}<button>Redrive</button></div>${letterTable(dead.items)}`;
  return html`<p>${counted(dead.total, 'dead letter')}${
    dead.total > dead.items.length ? `; the oldest ${count(dead.items.length)} are shown` : ''
  }.</p>
<form method="post" action="/ops/dead/${dead.job}/redrive" data-ticks><input type="hidden" name="csrf" value="${csrf ?? ''}">${form}</form>
<h2>Throw away</h2>${actionForm(
    csrf,
    `/ops/dead/${dead.job}/purge`,
    html`${select('reason', reasonOptions(dead))}${field(
      `Type ${dead.job} to confirm`,
      html`<input name="confirm" autocomplete="off" required>`,
    )}<button class="danger">Purge</button>`,
  )}`;
};

const tones = {
  running: 'plain',
  done: 'good',
  stopped: 'warn',
  failed: 'bad',
  interrupted: 'bad',
};

const runRow = (csrf: string | undefined, job: string, one: Run): Html =>
  html`${badge((tones as Record<string, 'plain'>)[one.status] ?? 'plain', one.status)}${
    one.status === 'running'
      ? actionForm(
          csrf,
          `/ops/dead/${job}/stop/${one.id}`,
          html`<button class="plain">Stop</button>`,
        )
      : ''
  }`;

const runTable = (items: readonly Run[], job: string, csrf: string | undefined): Html =>
  items.length === 0
    ? emptyNote('No orders yet.')
    : table(
        'Orders over these letters, newest first',
        [
          { head: 'When', names: true, cell: ({ at }) => moment(at) },
          { head: 'Order', cell: ({ action }) => action },
          { head: 'By', cell: ({ actor }) => actor },
          { head: 'Settled', figures: true, cell: ({ affected }) => count(affected ?? 0) },
          { head: 'State', cell: (one) => runRow(csrf, job, one) },
        ],
        items,
        ({ id }) => id,
      );

const body = async ({ run, params, caller }: Visit): Promise<Html> => {
  const job = params.job ?? '';
  const letters = await section(
    'The dead letters',
    () => run(deadLetters, { params: { job } }),
    (dead) =>
      dead.total === 0 ? emptyNote('There are no dead letters.') : orders(dead, caller.csrf),
  );
  const runs = await section(
    'The orders',
    () => run(auditLog, { query: { subject: job, limit: 10 } }),
    ({ items }) => runTable(items, job, caller.csrf),
  );
  return html`<section id="letters" data-live>${letters}</section>
<h2>Orders</h2><section id="runs" data-live>${runs}</section>`;
};

export const deadJobPage = opsPage({
  ...{ path: '/ops/dead/{job}', menu: '/ops/dead', everySeconds: 3, body },
  title: ({ params }) => `Dead letters of ${params.job}`,
});

const jobOf = ({ params }: Visit): string => params.job ?? '';
const pageOf = (visit: Visit): string => `/ops/dead/${jobOf(visit)}`;

const chosen = (form: URLSearchParams) => ({
  ...(form.get('which') === 'picked' ? { ids: form.getAll('id') } : {}),
  ...(form.get('reason') ? { reason: form.get('reason') } : {}),
});

const redriveForm = consoleForm({
  path: '/ops/dead/{job}/redrive',
  summary: 'Gives dead letters back to work.',
  from: pageOf,
  submit: async (visit, form) => {
    const perSecond = Number(form.get('per_second') ?? 200);
    const body = { ...chosen(form), per_second: perSecond };
    await visit.run(redriveLetters, { params: { job: jobOf(visit) }, body });
    return { said: `Redriving, ${perSecond} a second at most.`, to: pageOf(visit) };
  },
});

const purgeForm = consoleForm({
  path: '/ops/dead/{job}/purge',
  summary: 'Throws dead letters away.',
  from: pageOf,
  submit: async (visit, form) => {
    const body = { ...chosen(form), confirm: form.get('confirm') ?? '' };
    await visit.run(purgeLetters, { params: { job: jobOf(visit) }, body });
    return { said: 'Throwing them away.', to: pageOf(visit) };
  },
});

const stopForm = consoleForm({
  path: '/ops/dead/{job}/stop/{id}',
  summary: 'Ends an order over dead letters.',
  from: pageOf,
  submit: async (visit) => {
    await visit.run(stopRun, { params: { id: visit.params.id ?? '' } });
    return { said: 'Stopping; what is not settled stays dead.', to: pageOf(visit) };
  },
});

export const deadForms = [redriveForm, purgeForm, stopForm];

// Orders over dead letters: the one that runs, and those that were.
import type { auditLog } from '../../routes/audit.ts';
import { run as oneRun, stopRun } from '../../routes/dead.ts';
import { queuesNow } from '../../routes/queues.ts';
import { count, counted, moment } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, type Visit } from '../page.ts';
import { actionForm, badge, emptyNote, named, type Tone, table } from '../parts.ts';

type Run = Awaited<ReturnType<typeof auditLog.handle>>['items'][number];

const verbs: Record<string, [string, string, string]> = {
  'dead.redrive': ['Redriving', 'Redriven', 'redrive'],
  'dead.purge': ['Throwing away', 'Thrown away', 'purge'],
};

/** Stopping an order is on record too, and is none. */
export const isOrder = ({ action }: Run): boolean => action in verbs;

const stopForm = (csrf: string | undefined, job: string, id: string): Html =>
  actionForm(csrf, `/ops/dead/${job}/stop/${id}`, html`<button>Stop</button>`);

/** How the order goes that runs over the letters of a job. */
export const running = async ({ run, caller }: Visit, job: string, id: string): Promise<Html> => {
  const [{ run: now }, { items }] = await Promise.all([
    run(oneRun, { params: { id } }),
    run(queuesNow),
  ]);
  const left = items.find((one) => one.job === job)?.dead ?? 0;
  const settled = now.affected ?? 0;
  const [doing = now.action] = verbs[now.action] ?? [];
  const rate = now.detail.per_second;
  return html`<article><h2>${doing} ${badge('plain', now.status)}</h2>
<p><strong>${count(settled)}</strong> settled, ${count(left)} still dead; ${typeof rate === 'number' ? `${count(rate)} a second at most` : ''}. By ${named(now.actor)} since ${moment(now.at)}.</p>
<progress max="${Math.max(settled + left, 1)}" value="${settled}" aria-label="Settled letters">${settled}</progress>
${stopForm(caller.csrf, job, id)}<p class="note">The letters themselves are shown when it has ended.</p></article>`;
};

const tones: Record<string, Tone> = {
  ...{ running: 'plain', done: 'good', stopped: 'warn', failed: 'bad', interrupted: 'bad' },
};

const meant = ({ detail }: Run): string => {
  const { ids, reason } = detail as { ids?: unknown[]; reason?: unknown };
  if (Array.isArray(ids) && ids.length > 0) return counted(ids.length, 'picked letter');
  return reason ? `all with the reason ${String(reason)}` : 'all';
};

export const runTable = (items: readonly Run[], job: string, csrf: string | undefined): Html =>
  items.length === 0
    ? emptyNote('No orders yet.')
    : table(
        'Orders over these letters, newest first',
        [
          { head: 'When', names: true, cell: ({ at }) => moment(at) },
          { head: 'Order', cell: (one) => `${verbs[one.action]?.[2] ?? one.action} ${meant(one)}` },
          { head: 'By', cell: ({ actor }) => named(actor) },
          { head: 'Settled', figures: true, cell: ({ affected }) => count(affected ?? 0) },
          {
            head: 'State',
            cell: ({ id, status, error }) =>
              html`${badge(tones[status] ?? 'plain', status)}${error && html` <small>${error}</small>`}${status === 'running' && stopForm(csrf, job, id)}`,
          },
        ],
        items,
        ({ id }) => id,
      );

const stop = consoleForm({
  path: '/ops/dead/{job}/stop/{id}',
  summary: 'Ends an order over dead letters.',
  from: ({ params }) => `/ops/dead/${params.job}`,
  submit: async (visit) => {
    await visit.run(stopRun, { params: { id: visit.params.id ?? '' } });
    const to = `/ops/dead/${visit.params.job}`;
    return { said: 'Stopping: what is not settled stays dead.', to };
  },
});

export const orderForms = [stop];

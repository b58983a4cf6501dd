// The audit log: what operators did.
import { auditLog } from '../../routes/audit.ts';
import { count, moment } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, emptyNote, table } from '../parts.ts';
import { section } from '../section.ts';

type Answer = Awaited<ReturnType<typeof auditLog.handle>>;

const listed = ({ items, next_before: next }: Answer): Html =>
  items.length === 0
    ? emptyNote('Nobody has done anything yet.')
    : html`${table(
        'What operators did, newest first',
        [
          { head: 'When', names: true, cell: ({ at }) => moment(at) },
          { head: 'Who', cell: ({ actor }) => actor },
          { head: 'What', cell: ({ action }) => action },
          { head: 'To what', cell: ({ subject }) => subject },
          { ...{ head: 'More', as: 'wide' }, cell: ({ detail }) => JSON.stringify(detail) },
          {
            ...{ head: 'How many', figures: true },
            cell: ({ affected }) => (affected === null ? '–' : count(affected)),
          },
          {
            head: 'State',
            cell: ({ status, error }) =>
              html`${badge(status === 'done' ? 'good' : status === 'running' ? 'plain' : 'warn', status)}${error && html` <small>${error}</small>`}`,
          },
        ],
        items,
        ({ id }) => id,
      )}${next && html`<p><a href="/ops/audit?before=${next}">Older ones</a></p>`}`;

const body = async ({ run, query }: Visit): Promise<Html> => {
  const before = query.get('before');
  const asked = { limit: 50, ...(before ? { before } : {}) };
  return html`<section id="all" data-live>${await section('The audit log', () => run(auditLog, { query: asked }), listed)}</section>`;
};

export const auditPage = opsPage({
  ...{ path: '/ops/audit', menu: '/ops/audit', title: 'Audit log', everySeconds: 5, body },
});

// Accounts: found by what people know of them.
import { searchAccounts } from '../../routes/accounts.ts';
import { moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, emptyNote, field, table } from '../parts.ts';
import { section } from '../section.ts';

type Answer = Awaited<ReturnType<typeof searchAccounts.handle>>;
type Line = Answer['items'][number];

export const stateOf = ({ status }: { status: string }): Html =>
  badge(status === 'active' ? 'good' : 'bad', status);

const listed = ({ items, next_before: next }: Answer, q: string): Html =>
  items.length === 0
    ? emptyNote('Nobody was found.')
    : html`${table(
        'Accounts',
        [
          {
            ...{ head: 'Account', names: true },
            cell: ({ id, name }: Line) => html`<a href="/ops/accounts/${id}">${name}</a>`,
          },
          { head: 'E-mail', cell: ({ email }) => email },
          { head: 'Phone', cell: ({ phone }) => phone },
          { head: 'State', cell: stateOf },
          { head: 'Plan', cell: ({ plan }) => plan.replaceAll('_', ' ') },
          { head: 'Balance', figures: true, cell: ({ balance }) => usd(balance) },
          { head: 'Since', cell: ({ created_at: at }) => moment(at) },
        ],
        items,
        ({ id }) => id,
      )}${next && html`<p><a href="/ops/accounts?q=${encodeURIComponent(q)}&before=${next}">Older ones</a></p>`}`;

const body = async ({ run, query }: Visit): Promise<Html> => {
  const q = query.get('q') ?? '';
  const before = query.get('before');
  const asked = { q, limit: 50, ...(before ? { before } : {}) };
  return html`<form method="get" action="/ops/accounts" class="line" role="search">${field(
    'Id, beginning of e-mail address or phone, part of a name',
    html`<input name="q" value="${q}" maxlength="254" autocomplete="off">`,
  )}<button>Search</button></form>
${await section(
  'The accounts',
  () => run(searchAccounts, { query: asked }),
  (found) => listed(found, q),
)}`;
};

export const accountsPage = opsPage({
  ...{ path: '/ops/accounts', menu: '/ops/accounts', title: 'Accounts', body },
});

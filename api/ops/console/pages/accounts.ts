// Accounts: found by what people know of them.
import { searchAccounts } from '../../routes/accounts.ts';
import { moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, emptyNote, field, named, pages, table } from '../parts.ts';
import { section } from '../section.ts';

type Answer = Awaited<ReturnType<typeof searchAccounts.handle>>;
type Line = Answer['items'][number];

/** The state of an account as a word. */
export const stateOf = ({ status }: { status: string }): Html =>
  badge(status === 'active' ? 'good' : 'bad', status);

const addressOf = (q: string, before?: string): string => {
  const query = new URLSearchParams({ ...(q ? { q } : {}), ...(before ? { before } : {}) });
  return `/ops/accounts${query.size > 0 ? `?${query}` : ''}`;
};

const listed = (
  { items, next_before: next }: Answer,
  { q, before }: { q: string; before: string | null },
): Html => {
  const newest = before === null ? undefined : addressOf(q);
  if (items.length === 0) {
    const none = q === '' ? 'There are no accounts yet.' : 'No account fits.';
    return html`${emptyNote(none)}${pages(newest, undefined)}`;
  }
  return html`${table(
    'Accounts, newest first',
    [
      {
        ...{ head: 'Account', names: true, as: 'wide' },
        cell: ({ id, name, company }: Line) =>
          html`<a href="/ops/accounts/${id}">${named(name)}</a>${company && html` <small>${named(company)}</small>`}`,
      },
      { ...{ head: 'E-mail', as: 'wide' }, cell: ({ email }) => email },
      { head: 'Phone', cell: ({ phone }) => phone },
      { head: 'State', cell: stateOf },
      { head: 'Plan', cell: ({ plan }) => plan.replaceAll('_', ' ') },
      { head: 'Balance', figures: true, cell: ({ balance }) => usd(balance) },
      { head: 'Since', cell: ({ created_at: at }) => moment(at) },
    ],
    items,
    ({ id }) => id,
  )}${pages(newest, next === null ? undefined : addressOf(q, next))}`;
};

const body = async ({ run, query }: Visit): Promise<Html> => {
  const q = query.get('q') ?? '';
  const before = query.get('before');
  const asked = { q, limit: 50, ...(before ? { before } : {}) };
  return html`<form method="get" action="/ops/accounts" class="line" role="search">${field(
    'Find an account',
    html`<input name="q" type="search" value="${q}" maxlength="254" size="34" autocomplete="off" dir="auto">`,
    'Id, beginning of its e-mail address or phone, or part of its name or company.',
  )}<button>Find</button></form>
${await section(
  'The accounts',
  () => run(searchAccounts, { query: asked }),
  (found) => listed(found, { q, before }),
)}`;
};

export const accountsPage = opsPage({
  ...{ path: '/ops/accounts', menu: '/ops/accounts', title: 'Accounts', everySeconds: 15, body },
});

// Accounts: found by what people know of them.
import { searchAccounts } from '../../routes/accounts.ts';
import { moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, emptyNote, field, named, pages, table } from '../parts.ts';
import { section } from '../section.ts';
import { addressOf, soughtIn } from './account-search.ts';

type Answer = Awaited<ReturnType<typeof searchAccounts.handle>>;
type Line = Answer['items'][number];

/** The state of an account as a word. */
export const stateOf = ({ status }: { status: string }): Html =>
  badge(status === 'active' ? 'good' : 'bad', status);

const listed = (
  { items, next_before: next }: Answer,
  { look, before }: { look: string; before: string | null },
): Html => {
  const newest = before === null ? undefined : addressOf(look);
  if (items.length === 0) {
    const none = look === '' ? 'There are no accounts yet.' : 'No account fits.';
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
  )}${pages(newest, next === null ? undefined : addressOf(look, next))}`;
};

const body = async ({ app, run, query, caller }: Visit): Promise<Html> => {
  const look = query.get('look') ?? '';
  const q = soughtIn(app, look);
  const before = query.get('before');
  const asked = { q, limit: 50, ...(before ? { before } : {}) };
  return html`<form method="post" action="/ops/accounts/search" class="line" role="search" data-key="search"><input type="hidden" name="csrf" value="${caller.csrf ?? ''}">${field(
    'Find an account',
    html`<input name="q" type="search" value="${q}" maxlength="254" size="34" autocomplete="off" dir="auto">`,
    'Id, beginning of its e-mail address or phone, or part of its name or company.',
  )}<button>Find</button></form>
${await section(
  'The accounts',
  () => run(searchAccounts, { body: asked }),
  (found) => listed(found, { look, before }),
)}`;
};

export const accountsPage = opsPage({
  ...{ path: '/ops/accounts', menu: '/ops/accounts', title: 'Accounts', everySeconds: 15, body },
});

// What an account was searched by, sealed: addresses of pages end up in histories and logs, and it may be a number.
import { invalid } from '../../../../lib/kernel/errors.ts';
import type { OpsApp } from '../../../../lib/ops-app.ts';
import { searchAccounts } from '../../routes/accounts.ts';
import { consoleForm } from '../page.ts';

const context = { purpose: 'ops account search', record: 'console' };

/** The address of a page of what was found; `before` begins it behind an account. */
export const addressOf = (look: string, before?: string): string => {
  const query = new URLSearchParams({
    ...(look ? { look } : {}),
    ...(before ? { before } : {}),
  });
  return `/ops/accounts${query.size > 0 ? `?${query}` : ''}`;
};

/** What was searched by. @throws VALIDATION_ERROR for an address that is none of ours */
export const soughtIn = ({ sealer }: Pick<OpsApp, 'sealer'>, look: string): string => {
  if (look === '') return '';
  try {
    return sealer.open(look, context);
  } catch {
    throw invalid({ field: 'look', issue: 'this search is not known any more: search again' });
  }
};

export const searchForm = consoleForm({
  path: '/ops/accounts/search',
  summary: 'Looks accounts up.',
  from: () => '/ops/accounts',
  submit: async ({ app, run }, form) => {
    const q = (form.get('q') ?? '').trim();
    // Whether it can be searched for is said at the form.
    await run(searchAccounts, { body: { q, limit: 1 } });
    return { to: addressOf(q === '' ? '' : app.sealer.seal(q, context)) };
  },
});

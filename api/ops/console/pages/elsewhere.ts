// Addresses that are no page: the bare address of the listener, and whatever is not there.
import { fail } from '../../../../lib/kernel/errors.ts';
import { opsText } from '../../route.ts';
import { homePath } from '../../way-back.ts';
import { opsPage } from '../page.ts';

export const rootRoute = opsText({
  path: '/',
  summary: 'Leads to the console.',
  respond: () =>
    Promise.resolve({
      ...{ status: 302, type: 'text/plain; charset=utf-8', body: `${homePath}\n` },
      headers: { Location: homePath },
    }),
});

const page = opsPage({
  ...{ path: '/ops/{rest}', menu: '', title: 'Not found', everySeconds: 0 },
  body: () => Promise.reject(fail('NOT_FOUND')),
});

/** The last one: people get a page that says so, programs the envelope. */
export const missingPage: typeof page = {
  ...page,
  respond: (app, request) => {
    const wantsPage = String(request.headers.accept ?? '').includes('text/html');
    return wantsPage ? page.respond(app, request) : Promise.reject(fail('NOT_FOUND'));
  },
};

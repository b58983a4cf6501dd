// The audit log: what operators did.
import { auditLog } from '../../routes/audit.ts';
import { count, moment } from '../format.ts';
import { type Content, type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import { badge, emptyNote, field, named, pages, select, type Tone, table } from '../parts.ts';
import { section } from '../section.ts';

type Answer = Awaited<ReturnType<typeof auditLog.handle>>;
type Line = Answer['items'][number];

const actions = [
  ...[
    'dead.redrive',
    'dead.purge',
    'dead.stop',
    'channel.pause',
    'channel.resume',
    'account.suspend',
  ],
  ...['account.reinstate', 'account.deposit', 'account.adjust', 'payment.claim', 'account.price'],
  ...['account.shared_number', 'account.capacity', 'platform.pause', 'platform.resume'],
  ...['platform.countries', 'platform.guard', 'platform.price'],
];

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const subjectOf = ({ subject, action }: Line): Content => {
  if (uuid.test(subject)) {
    return html`<a class="mono" href="/ops/accounts/${subject}">${subject}</a>`;
  }
  return action.startsWith('dead.') ? html`<a href="/ops/dead/${subject}">${subject}</a>` : subject;
};

const worded = (value: unknown): string => {
  if (Array.isArray(value))
    return value.length > 3 ? `${count(value.length)} of them` : value.join(', ');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
};

const isSaid = (value: unknown): boolean =>
  value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);

const detailOf = ({ detail }: Line): Html =>
  html`<bdi class="long">${
    Object.entries(detail)
      .filter(([, value]) => isSaid(value))
      .map(([name, value]) => `${name.replaceAll('_', ' ')} ${worded(value)}`)
      .join(', ') || '–'
  }</bdi>`;

const tones: Record<string, Tone> = { done: 'good', running: 'plain', failed: 'bad' };

const stateOf = ({ status, error }: Line): Html =>
  html`${badge(tones[status] ?? 'warn', status)}${error && html` <small class="long">${error}</small>`}`;

const addressOf = (given: Record<string, string>): string => {
  const query = new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ''));
  return `/ops/audit${query.size > 0 ? `?${query}` : ''}`;
};

const listed = ({ items, next_before: next }: Answer, filter: Record<string, string>): Html => {
  const { before = '', ...kept } = filter;
  const newest = before === '' ? undefined : addressOf(kept);
  const filtered = Object.values(kept).some((value) => value !== '');
  if (items.length === 0) {
    return emptyNote(filtered ? 'Nothing fits.' : 'Nobody has done anything yet.');
  }
  return html`${table(
    'What operators did, newest first',
    [
      { head: 'When', names: true, cell: ({ at }) => moment(at) },
      { head: 'Who', cell: ({ actor }) => named(actor) },
      { head: 'What', cell: ({ action }) => action },
      { head: 'State', cell: stateOf },
      {
        ...{ head: 'Affected', figures: true },
        cell: ({ affected }) => (affected === null ? '–' : count(affected)),
      },
      { ...{ head: 'To what', as: 'wide' }, cell: subjectOf },
      { ...{ head: 'How', as: 'wide' }, cell: detailOf },
    ],
    items,
    ({ id }) => id,
  )}${pages(newest, next === null ? undefined : addressOf({ ...kept, before: next }))}`;
};

const body = async ({ run, query }: Visit): Promise<Html> => {
  const filter = {
    ...{ action: query.get('action') ?? '', subject: (query.get('subject') ?? '').trim() },
    before: query.get('before') ?? '',
  };
  const asked = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''));
  const all = [{ value: '', text: 'Everything' }];
  const options = [...all, ...actions.map((value) => ({ value, text: value }))];
  return html`<form method="get" action="/ops/audit" class="line" role="search">${field('What', select('action', options, filter.action))}${field('To what', html`<input name="subject" value="${filter.subject}" maxlength="120" size="34" autocomplete="off">`, 'A job, an account’s id, a channel, a country.')}<button>Show</button></form>
${await section(
  'The audit log',
  () => run(auditLog, { query: { ...asked, limit: 50 } }),
  (found) => listed(found, filter),
)}`;
};

export const auditPage = opsPage({
  ...{ path: '/ops/audit', menu: '/ops/audit', title: 'Audit log', everySeconds: 5, body },
});

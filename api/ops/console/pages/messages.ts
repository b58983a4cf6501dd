// Messages: looked up by id, phone or request id, and one of them with everything that happened to it.
import { oneMessage, searchMessages } from '../../routes/messages.ts';
import { moment } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import { actionForm, badge, emptyNote, facts, field, type Tone, table } from '../parts.ts';

type Found = Awaited<ReturnType<typeof oneMessage.handle>>;
type Message = Awaited<ReturnType<typeof searchMessages.handle>>['items'][number];

const tones: Record<string, Tone> = { verified: 'good', failed: 'bad', expired: 'warn' };

const stateOf = ({ status }: { status?: string | undefined }): Html =>
  badge(tones[status ?? ''] ?? 'plain', status ?? '–');

const listed = (items: readonly Message[]): Html =>
  table(
    'Messages found, newest first',
    [
      {
        ...{ head: 'Message', names: true },
        cell: (one) => html`<a href="/ops/messages/${one.message_id}">${one.message_id}</a>`,
      },
      { head: 'Phone', cell: ({ phone }) => phone },
      { head: 'State', cell: stateOf },
      { head: 'Channel', cell: ({ channel }) => channel ?? '–' },
      { head: 'When', cell: ({ created_at: at }) => moment(at) },
    ],
    items,
    ({ message_id: id }) => id,
  );

/** As many as a search answers. */
const idsMost = 20;

const cut = (items: readonly Message[]): Html | '' =>
  items.length < idsMost
    ? ''
    : html`<p class="note">The newest ${String(idsMost)}; the account’s own lists have all of them.</p>`;

/** The results stand in the address by their ids: a phone number never does. */
const body = async ({ caller, query, run }: Visit): Promise<Html> => {
  const ids = (query.get('ids') ?? '').split(',').filter(Boolean).slice(0, idsMost);
  const found = await Promise.all(
    ids.map((id) => run(searchMessages, { body: { q: id } }).then(({ items }) => items)),
  );
  const items = found.flat();
  return html`${actionForm(
    caller.csrf,
    '/ops/messages/search',
    html`${field('Message id, whole phone number or request id', html`<input name="q" required maxlength="100" size="34" autocomplete="off">`)}<button>Look up</button>`,
  )}
${query.has('ids') ? (items.length === 0 ? emptyNote('No message has this id, phone number or request id.') : html`${listed(items)}${cut(items)}`) : emptyNote('A phone number is written whole, with + and country code: +14155550100.')}`;
};

export const messagesPage = opsPage({
  ...{ path: '/ops/messages', menu: '/ops/messages', title: 'Messages', everySeconds: 10, body },
});

const lookUp = consoleForm({
  path: '/ops/messages/search',
  summary: 'Looks messages up.',
  from: () => '/ops/messages',
  submit: async ({ run }, form) => {
    const { items } = await run(searchMessages, { body: { q: form.get('q') ?? '' } });
    const [only] = items;
    if (only && items.length === 1) {
      return { to: `/ops/messages/${only.message_id}` };
    }
    const ids = items.map(({ message_id: id }) => id).join(',');
    return { to: `/ops/messages?ids=${ids}` };
  },
});

export const messageForms = [lookUp];

const messageView = ({ message, steps }: Found): Html => html`<section class="card">${facts([
  ['Message', html`<span class="mono">${message.message_id}</span>`],
  ['State', stateOf(message)],
  ['Phone', message.phone ?? '–'],
  [
    'Account',
    html`<a href="/ops/accounts/${message.account_id ?? ''}">${message.account_id ?? '–'}</a>`,
  ],
  ['Channel', message.channel ?? '–'],
  ['Mode', message.mode ?? '–'],
  ['Request', html`<span class="mono">${message.request_id}</span>`],
  ['Failure', message.failure_reason?.replaceAll('_', ' ') ?? '–'],
])}</section>
<h2>What happened</h2>${table(
  'Timeline',
  [
    { head: 'When', names: true, cell: ({ at }) => moment(at) },
    { head: 'Step', cell: ({ type }) => type.replaceAll('_', ' ') },
    {
      ...{ head: 'More', as: 'wide' },
      cell: ({ at, type, ...more }) =>
        Object.entries(more)
          .filter(([, value]) => value !== null && value !== undefined)
          .map(
            ([name, value]) =>
              `${name} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`,
          )
          .join(', ') || '–',
    },
  ],
  steps,
)}`;

export const messagePage = opsPage({
  ...{ path: '/ops/messages/{id}', menu: '/ops/messages', title: 'A message', everySeconds: 5 },
  body: async ({ run, params }) => {
    const found = await run(oneMessage, { params: { id: params.id ?? '' } });
    return { title: `Message to ${found.message.phone ?? 'a phone'}`, content: messageView(found) };
  },
});

// One account: what it is and has, what went wrong lately, and what operators may do with it.
import { newId } from '../../../../lib/kernel/ids.ts';
import { oneAccount } from '../../routes/accounts.ts';
import { count, moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { opsPage, type Visit } from '../page.ts';
import {
  actionForm,
  askingButton,
  emptyNote,
  facts,
  field,
  named,
  select,
  table,
} from '../parts.ts';
import { stateOf } from './accounts.ts';

type Account = Awaited<ReturnType<typeof oneAccount.handle>>;

const limitsOf = ({ limits }: Account) => {
  if (limits === null) return [['Limits', 'not known while Redis is away']] as const;
  const { effective_policy: policy, eligibility } = limits;
  return [
    ['Tier', policy.tier],
    [
      'Sends',
      `${count(policy.sustained_per_minute)} a minute, ${count(policy.burst_per_10_seconds)} in 10 s`,
    ],
    ['Kept from sending by', eligibility.blocked_by.join(', ').replaceAll('_', ' ') || 'nothing'],
  ] as const;
};

const factsOf = (one: Account): Html =>
  html`<div class="cards two"><section class="card" aria-label="Who it is">${facts([
    ['State', stateOf(one)],
    ...(one.suspended_reason
      ? ([
          ['Suspended for', named(one.suspended_reason)],
          ['Suspended', moment(one.suspended_at)],
        ] as const)
      : []),
    ['E-mail', one.email],
    ['Phone', one.phone],
    ['Company', one.company ? named(one.company) : '–'],
    ['Customer since', moment(one.created_at)],
    ['Id', html`<span class="mono">${one.id}</span>`],
  ])}</section><section class="card" aria-label="What it has">${facts([
    ['Balance', html`<strong>${usd(one.balance)}</strong>`],
    ['Plan', one.plan.replaceAll('_', ' ')],
    ...limitsOf(one),
    ['Shared number', one.shared_number_paused ? 'kept off it' : 'allowed'],
    ['Second factor', one.mfa_enabled ? 'on' : 'off'],
    ['Webhook', one.has_webhook ? 'set' : 'none'],
  ])}</section></div>`;

const failures = (one: Account): Html =>
  one.recent_failures.length === 0
    ? emptyNote('Nothing failed within the last week.')
    : table(
        'Messages that failed within the last week, newest first',
        [
          { head: 'When', names: true, cell: ({ created_at: at }) => moment(at) },
          { head: 'Why', cell: ({ failure_reason: why }) => why?.replaceAll('_', ' ') ?? '–' },
          { head: 'Phone', cell: ({ phone }) => phone },
          {
            head: 'Message',
            cell: ({ message_id: id }) =>
              html`<a class="mono" href="/ops/messages/${id}">${id}</a>`,
          },
        ],
        one.recent_failures,
        ({ message_id: id }) => id,
      );

const at = (one: Account, verb: string): string => `/ops/accounts/${one.id}/${verb}`;

const access = (one: Account, csrf: string | undefined): Html => {
  const reason = field(
    'Reason, told to the customer’s webhook',
    html`<input name="reason" required maxlength="200" autocomplete="off">`,
  );
  const off = one.shared_number_paused;
  return html`${
    one.status === 'suspended'
      ? actionForm(csrf, at(one, 'reinstate'), html`<button class="main">Reinstate</button>`)
      : actionForm(
          csrf,
          at(one, 'suspend'),
          html`${reason}${askingButton('Suspend', { ask: `Suspend ${one.name}? Its keys and sessions are refused at once. Reason: {reason}`, yes: 'Suspend', as: 'danger' })}`,
        )
  }${actionForm(
    csrf,
    at(one, 'logout'),
    askingButton('End its sessions', {
      ask: `End all sessions of ${one.name}? Its owner has to log in again; its keys go on.`,
      yes: 'End them',
    }),
  )}${actionForm(
    csrf,
    at(one, 'shared-number'),
    html`<input type="hidden" name="paused" value="${off ? 'no' : 'yes'}"><button>${off ? 'Let it use the shared number again' : 'Keep it off the shared number'}</button>`,
  )}`;
};

const money = (one: Account, csrf: string | undefined): Html =>
  actionForm(
    csrf,
    at(one, 'credit'),
    html`${field(
      'What',
      select('kind', [
        { value: 'deposit', text: 'Payment received' },
        { value: 'adjust', text: 'Correction, up or down' },
      ]),
    )}${field('Amount, USD', html`<input name="amount" inputmode="decimal" required size="10" autocomplete="off">`)}${field('Reference', html`<input name="reference" maxlength="60" autocomplete="off">`, 'Booked once under one reference.')}<input type="hidden" name="once" value="${newId()}" data-keep>${field('Note', html`<input name="note" maxlength="200" autocomplete="off">`)}${askingButton('Book', { ask: `Book {amount} USD for ${one.name}? Its balance is ${usd(one.balance)} now.`, yes: 'Book' })}`,
  );

const prices = (one: Account, csrf: string | undefined): Html =>
  html`${
    one.prices.length === 0
      ? emptyNote('It pays what everybody pays.')
      : facts(one.prices.map(({ country, price }) => [country, usd(price ?? 0)] as const))
  }${actionForm(
    csrf,
    at(one, 'price'),
    html`${field('Country', html`<input name="country" required maxlength="2" size="4" autocomplete="off">`, 'Two letters.')}${field('Price, USD a success', html`<input name="price" inputmode="decimal" size="10" autocomplete="off">`, 'Empty: the platform’s price again.')}<button>Set</button>`,
  )}`;

const body = async ({ run, params, caller }: Visit) => {
  const one = await run(oneAccount, { params: { id: params.id ?? '' } });
  const content = html`<p class="crumb"><a href="/ops/accounts">All accounts</a> · <a href="/ops/channels?account=${one.id}">Its own number</a> · <a href="/ops/audit?subject=${one.id}">What operators did to it</a></p>
${factsOf(one)}
<h2>Failures</h2><section id="failures">${failures(one)}</section>
<h2>Access</h2><section id="access">${access(one, caller.csrf)}</section>
<h2>Money</h2><section id="money">${money(one, caller.csrf)}</section>
<h2>Own prices</h2><section id="prices">${prices(one, caller.csrf)}</section>`;
  return { title: one.name, content };
};

export const accountPage = opsPage({
  ...{ path: '/ops/accounts/{id}', menu: '/ops/accounts', title: 'An account' },
  ...{ everySeconds: 10, body },
});

// One account: what it is and has, what went wrong lately, and what operators may do with it.
import {
  creditOne,
  oneAccount,
  priceOne,
  reinstateOne,
  sharedNumberOne,
  suspendOne,
} from '../../routes/accounts.ts';
import { moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, type Form, opsPage, type Visit } from '../page.ts';
import { actionForm, emptyNote, facts, field, select, table } from '../parts.ts';
import { stateOf } from './accounts.ts';

type Account = Awaited<ReturnType<typeof oneAccount.handle>>;

const factsOf = (one: Account): Html =>
  facts([
    ['State', stateOf(one)],
    ...(one.suspended_reason ? ([['Suspended for', one.suspended_reason]] as const) : []),
    ['E-mail', one.email],
    ['Phone', one.phone],
    ['Company', one.company ?? '–'],
    ['Plan', one.plan.replaceAll('_', ' ')],
    ['Balance', usd(one.balance)],
    ['Tier', one.limits?.effective_policy.tier ?? '–'],
    ['Blocked by', one.limits?.eligibility.blocked_by.join(', ') || 'nothing'],
    ['Second factor', one.mfa_enabled ? 'yes' : 'no'],
    ['Webhook', one.has_webhook ? 'yes' : 'no'],
    ['Since', moment(one.created_at)],
  ]);

const failures = (one: Account): Html =>
  one.recent_failures.length === 0
    ? emptyNote('Nothing failed lately.')
    : table(
        'Messages that failed lately',
        [
          {
            ...{ head: 'Message', names: true },
            cell: ({ message_id: id }) => html`<a href="/ops/messages/${id}">${id}</a>`,
          },
          { head: 'Phone', cell: ({ phone }) => phone },
          { head: 'Why', cell: ({ failure_reason: why }) => why ?? '–' },
          { head: 'When', cell: ({ created_at: at }) => moment(at) },
        ],
        one.recent_failures,
        ({ message_id: id }) => id,
      );

const amount = html`<input name="amount" inputmode="decimal" required size="10">`;

const actions = (one: Account, csrf: string | undefined): Html => {
  const at = (verb: string): string => `/ops/accounts/${one.id}/${verb}`;
  const suspended = one.status === 'suspended';
  const reason = field('Reason', html`<input name="reason" required maxlength="200">`);
  return html`<h2>Access</h2>${
    suspended
      ? actionForm(csrf, at('reinstate'), html`<button>Reinstate</button>`)
      : actionForm(csrf, at('suspend'), html`${reason}<button class="danger">Suspend</button>`)
  }${actionForm(
    csrf,
    at('shared-number'),
    html`<input type="hidden" name="paused" value="${one.shared_number_paused ? 'no' : 'yes'}"><button>${one.shared_number_paused ? 'Let it use the shared number again' : 'Keep it off the shared number'}</button>`,
  )}
<h2>Money</h2>${actionForm(
    csrf,
    at('credit'),
    html`${select('kind', [
      { value: 'deposit', text: 'Payment received' },
      { value: 'adjust', text: 'Correction, up or down' },
    ])}${field('USD', amount)}${field('Reference', html`<input name="reference" maxlength="60">`, 'Booked once under one reference.')}${field('Note', html`<input name="note" maxlength="200">`)}<button>Book</button>`,
  )}
<h2>Own prices</h2>${
    one.prices.length === 0
      ? emptyNote('It has none.')
      : facts(one.prices.map(({ country, price }) => [country, usd(price ?? 0)] as const))
  }${actionForm(
    csrf,
    at('price'),
    html`${field('Country', html`<input name="country" required maxlength="2" size="3">`)}${field('USD a success', html`<input name="price" inputmode="decimal" size="10">`, 'Empty takes it away.')}<button>Set</button>`,
  )}`;
};

const body = async ({ run, params, caller }: Visit): Promise<Html> => {
  const one = await run(oneAccount, { params: { id: params.id ?? '' } });
  return html`<section id="facts" data-live>${factsOf(one)}</section>
<h2>Failures</h2><section id="failures" data-live>${failures(one)}</section>
${actions(one, caller.csrf)}`;
};

export const accountPage = opsPage({
  ...{ path: '/ops/accounts/{id}', menu: '/ops/accounts', everySeconds: 10, body },
  title: ({ params }) => `Account ${params.id}`,
});

const textOf = (form: URLSearchParams, name: string): string => (form.get(name) ?? '').trim();
const orNull = (text: string): string | null => (text === '' ? null : text);

const accountForm = (
  verb: string,
  summary: string,
  submit: (visit: Visit, form: URLSearchParams, params: { id: string }) => Promise<string>,
) => {
  const from: Form['from'] = ({ params }) => `/ops/accounts/${params.id}`;
  return consoleForm({
    ...{ path: `/ops/accounts/{id}/${verb}`, summary, from },
    submit: async (visit, form) => {
      const said = await submit(visit, form, { id: visit.params.id ?? '' });
      return { said, to: from(visit, form) };
    },
  });
};

export const accountForms = [
  accountForm('suspend', 'Suspends an account.', async ({ run }, form, params) => {
    await run(suspendOne, { params, body: { reason: textOf(form, 'reason') } });
    return 'Suspended: its keys and sessions are refused everywhere.';
  }),
  accountForm('reinstate', 'Takes an account back.', async ({ run }, _, params) => {
    await run(reinstateOne, { params });
    return 'Reinstated: its keys work again.';
  }),
  accountForm(
    'shared-number',
    'The shared number of an account.',
    async ({ run }, form, params) => {
      const paused = form.get('paused') === 'yes';
      await run(sharedNumberOne, { params, body: { paused } });
      return paused ? 'It is kept off the shared number.' : 'It uses the shared number again.';
    },
  ),
  accountForm('credit', 'Books money.', async ({ run }, form, params) => {
    const reference = textOf(form, 'reference');
    const asked = {
      ...{ kind: form.get('kind'), amount: Number(textOf(form, 'amount') || 'NaN') },
      ...{ note: orNull(textOf(form, 'note')) },
      ...(reference === '' ? {} : { reference }),
    };
    const done = await run(creditOne, { params, body: asked });
    return `Booked as ${done.reference}.`;
  }),
  accountForm('price', 'Sets an account’s own price.', async ({ run }, form, params) => {
    const price = orNull(textOf(form, 'price'));
    const country = textOf(form, 'country').toUpperCase();
    const asked = { country, price: price === null ? null : Number(price) };
    await run(priceOne, { params, body: asked });
    return `The price for ${country} is ${price === null ? 'the platform’s again' : `${price} USD`}.`;
  }),
];

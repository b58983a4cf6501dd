// Payments that came for nobody we know, and the account each is booked to.
import { claimOne, unclaimedPayments } from '../../routes/payments.ts';
import { moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import { actionForm, askingButton, emptyNote, facts, field, named } from '../parts.ts';
import { section } from '../section.ts';
import { textOf } from './account-forms.ts';

const path = '/ops/payments';

type Payment = Awaited<ReturnType<typeof unclaimedPayments.handle>>['items'][number];

const view = (one: Payment, csrf: string | undefined): Html => {
  const { payment, amount } = one;
  const account = html`<input name="account" class="mono" size="36" autocomplete="off" spellcheck="false" required>`;
  const ask = {
    ask: `Book ${usd(amount)} to the account {account}? It is booked for good.`,
    yes: 'Book',
  };
  return html`<article data-key="${payment}"><h2>${usd(amount)}</h2>
${facts([
  ['Payment', html`<span class="mono">${payment}</span>`],
  ['Named for', named(one.named === '' ? '–' : one.named)],
  ['Received', moment(one.received_at)],
])}
${actionForm(
  csrf,
  `${path}/${encodeURIComponent(payment)}`,
  html`${field('Belongs to the account', account, 'Its id, as the page of the account shows it.')}${askingButton('Book it', { ...ask, as: 'main' })}`,
)}</article>`;
};

const body = async ({ run, caller }: Visit): Promise<Html> =>
  section(
    'The payments',
    () => run(unclaimedPayments),
    ({ items, more }) =>
      items.length === 0
        ? emptyNote('Every payment that was received belongs to an account.')
        : html`<p>This money was received, and no account has it yet: what the payment names is none of ours.</p>${items.map((one) => view(one, caller.csrf))}${more ? html`<p>These are the oldest; the others follow when some of them are booked.</p>` : ''}`,
  );

export const paymentsPage = opsPage({
  ...{ path, menu: path, title: 'Payments for nobody' },
  ...{ everySeconds: 10, body },
});

const claim = consoleForm({
  path: `${path}/{payment}`,
  summary: 'Books a payment to the account it was meant for.',
  from: () => path,
  submit: async ({ run, params }, form) => {
    const payment = params.payment ?? '';
    const { balance } = await run(claimOne, {
      params: { payment },
      body: { account: textOf(form, 'account') },
    });
    return { said: `Booked. The account has ${usd(balance)} now.`, to: path };
  },
});

export const paymentForms = [claim];

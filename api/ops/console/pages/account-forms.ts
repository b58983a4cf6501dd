// What operators do to an account from its page.
import { plainDecimal } from '../../../../lib/kernel/money.ts';
import {
  creditOne,
  logoutOne,
  priceOne,
  reinstateOne,
  sharedNumberOne,
  suspendOne,
} from '../../routes/accounts.ts';
import { usd } from '../format.ts';
import { consoleForm, type Form, type Visit } from '../page.ts';

/** What was written in a field of a form. */
export const textOf = (form: URLSearchParams, name: string): string =>
  (form.get(name) ?? '').trim();

/** A number of a form, a typed minus sign included; what is none is left for the operation to refuse. */
export const amountOf = (form: URLSearchParams, name: string): number =>
  plainDecimal(textOf(form, name).replace(/^−/, '-'));

/** The name that the form gave this booking: a form sent twice books once. */
const onceOf = (form: URLSearchParams): string => {
  const once = textOf(form, 'once');
  return /^[0-9a-f-]{36}$/.test(once) ? `ops-${once}` : '';
};

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
    const done = await run(suspendOne, { params, body: { reason: textOf(form, 'reason') } });
    return done.changed
      ? 'Suspended: its keys and sessions are refused everywhere.'
      : `Nothing changed: it was suspended already, for ${done.suspended_reason ?? 'no reason'}.`;
  }),
  accountForm('reinstate', 'Takes an account back.', async ({ run }, _, params) => {
    const { changed } = await run(reinstateOne, { params });
    return changed ? 'Reinstated: its keys work again.' : 'Nothing changed: it was active already.';
  }),
  accountForm('logout', 'Ends the sessions of an account.', async ({ run }, _, params) => {
    const { ended } = await run(logoutOne, { params });
    return ended === 0 ? 'It had no open session.' : `Ended: ${ended} sessions. Its keys go on.`;
  }),
  accountForm(
    'shared-number',
    'The shared number of an account.',
    async ({ run }, form, params) => {
      const paused = form.get('paused') === 'yes';
      const { changed } = await run(sharedNumberOne, { params, body: { paused } });
      if (!changed) return 'Nothing changed: it was so already.';
      return paused ? 'It is kept off the shared number.' : 'It uses the shared number again.';
    },
  ),
  accountForm('credit', 'Books money.', async ({ run }, form, params) => {
    const reference = textOf(form, 'reference') || onceOf(form);
    const asked = {
      ...{ kind: form.get('kind'), amount: amountOf(form, 'amount') },
      ...{ note: orNull(textOf(form, 'note')) },
      ...(reference === '' ? {} : { reference }),
    };
    const done = await run(creditOne, { params, body: asked });
    const booked = done.booked ? 'Booked' : 'Nothing changed: it was booked before';
    return `${booked} as ${done.reference}. The balance is ${usd(done.account.balance)}.`;
  }),
  accountForm('price', 'Sets an account’s own price.', async ({ run }, form, params) => {
    const price = textOf(form, 'price') === '' ? null : amountOf(form, 'price');
    const country = textOf(form, 'country').toUpperCase();
    await run(priceOne, { params, body: { country, price } });
    return `The price for ${country} is ${price === null ? 'the platform’s again' : usd(price)}.`;
  }),
];

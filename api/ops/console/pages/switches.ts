// What holds for everybody: pauses, countries, prices, the guard against pumping, and the books.
import {
  changeCountries,
  changeGuard,
  changePrice,
  changeSwitch,
  platformNow,
  proveBooks,
  removePrice,
} from '../../routes/platform.ts';
import { counted, moment, usd } from '../format.ts';
import { type Html, html } from '../html.ts';
import { consoleForm, opsPage, type Visit } from '../page.ts';
import { actionForm, askingButton, badge, emptyNote, field, select, table } from '../parts.ts';
import { section } from '../section.ts';
import { amountOf, textOf } from './account-forms.ts';

type Platform = Awaited<ReturnType<typeof platformNow.handle>>;

const titles = { shared_number: 'Shared number', trial: 'Free trial' } as const;

const effects = {
  shared_number: 'Sends over the shared number are refused for every customer.',
  trial: 'Nobody sends for free any more.',
} as const;

const switchButton = (name: keyof typeof titles, paused: boolean): Html => {
  const label = html`${paused ? 'Resume' : 'Pause'}<span class="quiet"> ${titles[name]}</span>`;
  return paused
    ? html`<button class="main">${label}</button>`
    : askingButton(label, { ask: `Pause: ${titles[name]}? ${effects[name]}`, yes: 'Pause' });
};

const pauses = ({ switches }: Platform, csrf: string | undefined): Html =>
  table(
    'Switches',
    [
      { head: 'What', names: true, cell: ({ name }) => titles[name] },
      {
        head: 'State',
        cell: ({ paused, since }) =>
          paused ? html`${badge('warn', 'paused')} ${moment(since)}` : badge('good', 'on'),
      },
      {
        head: 'Change',
        cell: ({ name, paused }) =>
          actionForm(
            csrf,
            '/ops/switches/pause',
            html`<input type="hidden" name="name" value="${name}"><input type="hidden" name="paused" value="${paused ? 'no' : 'yes'}">${switchButton(name, paused)}`,
            `${paused ? 'resume' : 'pause'} ${name}`,
          ),
      },
    ],
    switches,
    ({ name }) => name,
  );

const prices = ({ prices: all, default_price: standard }: Platform): Html =>
  html`<p class="lead">Everywhere else <strong>${usd(standard)}</strong> a success.</p>${
    all.length === 0
      ? emptyNote('No country has a price of its own.')
      : table(
          'Prices by country',
          [
            { head: 'Country', names: true, cell: ({ country }) => country },
            {
              ...{ head: 'Price', figures: true },
              cell: ({ price }) => (price === null ? 'not sold' : usd(price)),
            },
            { head: 'Cost', figures: true, cell: ({ cost }) => usd(cost) },
          ],
          all,
          ({ country }) => country,
        )
  }`;

type Held = NonNullable<Platform['pumping_guard']['held']>[number];

const reasonTexts: Readonly<Record<Held['reason'], string>> = {
  unverified: 'Hardly any of its codes there were entered.',
  across_accounts: 'Hardly any code of several accounts there was entered.',
  undelivered: 'Most of the codes that it checks itself have no receipt.',
  concentrated: 'Most of the codes that it checks itself go there.',
};

const whyHeld = ({ reason, early, together }: Held): string => {
  const { accounts, settled, verified } = together;
  const others =
    reason === 'across_accounts'
      ? ` ${counted(accounts, 'account')}: ${settled} sent, ${verified} verified.`
      : '';
  return `${reasonTexts[reason]}${others}${early ? ' Open codes were counted.' : ''}`;
};

const held = ({ pumping_guard: { held: all } }: Platform): Html => {
  if (all === null) return emptyNote('What is held is not known while Redis is away.');
  return all.length === 0
    ? emptyNote('No prefix is held.')
    : table(
        'Prefixes that are held',
        [
          {
            head: 'Prefix',
            names: true,
            cell: ({ prefix, country }) => prefix ?? `all of ${country}`,
          },
          { head: 'Account', cell: ({ account_id: id }) => id },
          { head: 'Why', cell: whyHeld },
          { head: 'Sent, verified', cell: ({ settled, verified }) => `${settled}, ${verified}` },
          { head: 'Until', cell: ({ until }) => moment(until) },
        ],
        all,
        ({ account_id: id, prefix, country }) => `${id} ${prefix ?? country}`,
      );
};

const books = ({ books: last }: Platform): Html =>
  html`<p class="lead">Compares balances, ledger, messages, TOTP log and payments; changes nothing. ${
    last === null
      ? 'No worker has told of a comparison yet.'
      : html`Last compared at ${moment(last.at)}: ${
          last.mismatches === 0
            ? badge('good', 'they agreed')
            : badge('bad', counted(last.mismatches, 'difference'))
        }`
  }</p>`;

const guardModes = [
  { value: 'off', text: 'off: looks at nothing' },
  { value: 'shadow', text: 'shadow: notes, refuses nobody' },
  { value: 'enforce', text: 'enforce: refuses held prefixes' },
  { value: 'default', text: 'as the environment says' },
];

const view = (platform: Platform, csrf: string | undefined): Html => html`${pauses(platform, csrf)}
<h2>Countries of the shared number</h2>${actionForm(
  csrf,
  '/ops/switches/countries',
  html`${field('Countries, two letters each', html`<input name="countries" value="${platform.shared_countries.join(', ')}" size="34" autocomplete="off">`, 'Empty: all countries.')}${askingButton('Set', { ask: 'Let the shared number serve {countries}? A dash stands for every country there is.', yes: 'Set' })}<button name="which" value="default">As the environment says</button>`,
)}
<h2>Guard against pumping</h2>${actionForm(
  csrf,
  '/ops/switches/guard',
  html`${field(
    'Mode',
    select('mode', guardModes, platform.pumping_guard.mode),
  )}<button>Set</button>`,
)}${held(platform)}
<h2>Prices</h2>${prices(platform)}${actionForm(
  csrf,
  '/ops/switches/price',
  html`${field('Country', html`<input name="country" required maxlength="2" size="4" autocomplete="off">`, 'Two letters.')}${field('Price, USD', html`<input name="price" inputmode="decimal" size="10" autocomplete="off">`, 'Empty: not sold.')}${field('Cost, USD', html`<input name="cost" inputmode="decimal" size="10" required autocomplete="off">`)}${askingButton('Set', { ask: 'Sell {country} at {price} USD, at a cost of {cost} USD? A dash for the price means: not sold.', yes: 'Set' })}`,
)}${
  platform.prices.length === 0
    ? ''
    : actionForm(
        csrf,
        '/ops/switches/price-remove',
        html`${field(
          'Country',
          select(
            'country',
            platform.prices.map(({ country }) => ({ value: country, text: country })),
            platform.prices[0]?.country ?? '',
          ),
        )}${askingButton('As everywhere', { ask: `Sell {country} at the price for everywhere, ${platform.default_price} USD?`, yes: 'As everywhere' })}`,
      )
}
<h2 id="books">Books</h2>${books(platform)}${actionForm(csrf, '/ops/switches/books', html`<button>Prove the books</button>`)}`;

const body = async ({ run, caller }: Visit): Promise<Html> =>
  section(
    'The switches',
    () => run(platformNow),
    (platform) => view(platform, caller.csrf),
  );

export const switchesPage = opsPage({
  ...{ path: '/ops/switches', menu: '/ops/switches', title: 'Switches and prices' },
  ...{ everySeconds: 5, body },
});

const platformForm = (
  verb: string,
  summary: string,
  submit: (visit: Visit, form: URLSearchParams) => Promise<string>,
) =>
  consoleForm({
    ...{ path: `/ops/switches/${verb}`, summary, from: () => '/ops/switches' },
    submit: async (visit, form) => ({ said: await submit(visit, form), to: '/ops/switches' }),
  });

export const switchForms = [
  platformForm('pause', 'Pauses or resumes for everybody.', async ({ run }, form) => {
    const paused = form.get('paused') === 'yes';
    const name = textOf(form, 'name') as keyof typeof titles;
    const { changed } = await run(changeSwitch, { body: { name, paused } });
    if (!changed)
      return `Nothing changed: ${titles[name]} was ${paused ? 'paused' : 'on'} already.`;
    return `${titles[name]}: ${paused ? 'paused' : 'on again'}.`;
  }),
  platformForm('countries', 'Sets the countries.', async ({ run }, form) => {
    const countries = textOf(form, 'countries')
      .toUpperCase()
      .split(/[\s,]+/)
      .filter(Boolean);
    const wanted = form.get('which') === 'default' ? null : countries;
    const { shared_countries: now } = await run(changeCountries, { body: { countries: wanted } });
    return `The shared number serves ${now.join(', ') || 'all countries'}.`;
  }),
  platformForm('guard', 'Sets the guard’s mode.', async ({ run }, form) => {
    const mode = form.get('mode');
    const body = { mode: mode === 'default' ? null : mode };
    const { pumping_guard: guard } = await run(changeGuard, { body });
    return `The guard’s mode is ${guard.mode}.`;
  }),
  platformForm('price', 'Sets a price.', async ({ run }, form) => {
    const price = textOf(form, 'price') === '' ? null : amountOf(form, 'price');
    const country = textOf(form, 'country').toUpperCase();
    await run(changePrice, { body: { country, price, cost: amountOf(form, 'cost') } });
    return `The price for ${country} is set.`;
  }),
  platformForm('price-remove', 'Takes a price of a country away.', async ({ run }, form) => {
    const country = textOf(form, 'country');
    const { changed } = await run(removePrice, { body: { country } });
    return changed
      ? `${country} is sold at the price for everywhere.`
      : `Nothing changed: ${country} has no price of its own.`;
  }),
  platformForm('books', 'Proves the books.', async ({ run }) => {
    const { accounts, agree, differences, difference_count: n } = await run(proveBooks);
    if (agree) return `The books of ${counted(accounts, 'account')} agree.`;
    return `${counted(n, 'difference')}: ${differences
      .map(({ check }) => check)
      .slice(0, 3)
      .join('; ')}.`;
  }),
];

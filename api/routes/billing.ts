// Money as its owner sees it: balance, prices, transactions (design section 4, "Money").

import { depositBounds, openDeposit } from '../../lib/billing/deposits.ts';
import { describeBilling, describePrices } from '../../lib/billing/describe.ts';
import { listTransactions, transactionsCsv } from '../../lib/billing/transactions.ts';
import { decimal, integer, list, nullable, object, oneOf, text } from '../../lib/kernel/schema.ts';
import { requireLiveRights } from '../../lib/keys/rights.ts';
import { takeRead } from '../../lib/limits/reads.ts';
import { changesOf } from '../acting.ts';
import { listQuery, page, timestamp } from '../fields.ts';
import { csvRoute, route } from '../route.ts';

const tag = 'Billing';

const usd = (about: string) => decimal().description(`${about} USD.`);
const plan = () => oneOf('trial', 'pay_per_success', 'per_message').description('Billing plan.');

const billing = route({
  ...{ method: 'GET', path: '/v1/clients/billing', tag, auth: 'account' },
  summary: 'Plan, balance, trial and cap of the account.',
  errors: ['NOT_FOUND'],
  data: object({
    plan: plan(),
    balance: usd('What is on the account.'),
    minimum_balance: usd('What must be on it to send.'),
    currency: oneOf('USD'),
    trial_granted: integer().min(0).description('Free verifications of this account.'),
    trial_remaining: integer().min(0).description('Those that are left.'),
    spend_cap_hourly: nullable(usd('Most per UTC hour; null: no cap.')),
    spent_this_hour: usd('Spent in this UTC hour.'),
    price_per_verification: usd('Price in countries without one of their own.'),
    price_per_totp_verification: usd('Price of a TOTP verification.'),
  }),
  handle: async (app, { account }) => {
    await takeRead(app.reads, 'read', account.id);
    return describeBilling(app, account);
  },
});

const pricing = route({
  ...{ method: 'GET', path: '/v1/clients/pricing', tag, auth: 'account' },
  summary: 'Prices by destination; the account’s own come first.',
  data: object({
    currency: oneOf('USD'),
    default_price: usd('Price in countries that are not listed.'),
    totp_price: usd('Price of a TOTP verification.'),
    items: list(
      object({
        country: text().length(2).description('ISO 3166 code of the destination.'),
        price: nullable(usd('Price of a verification; null: not sold.')),
        source: oneOf('account', 'platform').description('Whose price it is.'),
      }),
    ),
    next_before: nullable(text()).description('Always null: one page holds them all.'),
  }),
  handle: async (app, { account }) => {
    await takeRead(app.reads, 'read', account.id);
    const { currency, default_price, totp_price, items } = await describePrices(app, account);
    return { currency, default_price, totp_price, items, next_before: null };
  },
});

const kinds = ['deposit', 'grant', 'charge', 'totp', 'refund', 'adjust'] as const;

const transactions = route({
  ...{ method: 'GET', path: '/v1/clients/transactions', tag, auth: 'account' },
  summary: 'Every movement of the balance, newest first; a test key has none.',
  query: object(listQuery(100)),
  data: page(
    object({
      id: text().guid(),
      kind: oneOf(...kinds).description('What moved the balance.'),
      amount: usd('What came (positive) or went.'),
      balance_after: usd('The balance after it.'),
      reference: text().description('Names the movement; there is one per name.'),
      message_id: nullable(text()).description('The message it is for, if any.'),
      created_at: timestamp(),
    }),
  ),
  handle: async (app, { account, keyMode, query }) => {
    await takeRead(app.reads, 'read', account.id);
    return listTransactions(app, account.id, { ...query, keyMode });
  },
});

const transactionsExport = csvRoute({
  ...{ method: 'GET', path: '/v1/clients/transactions/export', tag },
  summary: 'All transactions as CSV, newest first; a test key has none.',
  file: 'transactions.csv',
  rows: async (app, { account, keyMode }) => {
    await takeRead(app.reads, 'export', account.id);
    return transactionsCsv(app, account.id, keyMode);
  },
});

const deposits = route({
  ...{ method: 'POST', path: '/v1/clients/deposits', tag, auth: 'account' },
  summary: 'Opens a page to pay on; the balance grows once the payment has arrived.',
  errors: ['REAUTH_REQUIRED'],
  body: object({
    amount: decimal()
      .min(depositBounds.min)
      .max(depositBounds.max)
      .precision(2)
      .description('USD, with at most two decimals.')
      .example(50),
  }),
  data: object({
    deposit_id: text().description(
      'Name of the payment; the transaction’s reference ends with it.',
    ),
    checkout_url: text().description('Where to pay.'),
    amount: usd('What was asked for.'),
    status: oneOf('pending').description('Nothing is booked yet.'),
  }),
  handle: async (app, { account, session, keyMode, body }) => {
    requireLiveRights(keyMode);
    await takeRead(app.reads, 'connect', changesOf({ account, session }));
    const { amount } = body;
    const { id, url } = await openDeposit(app, { accountId: account.id, amount });
    return { deposit_id: id, checkout_url: url, amount, status: 'pending' as const };
  },
});

export const billingRoutes = [deposits, billing, pricing, transactions, transactionsExport];

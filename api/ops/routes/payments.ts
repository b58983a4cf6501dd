// Payments that came for nobody we know: looked at, and given to the account they were meant for.
import { claimPayment } from '../../../lib/billing/deposits.ts';
import { toUsd } from '../../../lib/kernel/money.ts';
import { object, text } from '../../../lib/kernel/schema.ts';
import { describeAccount } from '../../../lib/ops/accounts.ts';
import { act } from '../act.ts';
import { idText, isoOrNull } from '../fields.ts';
import { opsRoute } from '../route.ts';

const most = 100;

export const unclaimedPayments = opsRoute({
  ...{ method: 'GET', path: '/ops/api/payments' },
  summary: 'Payments received for no known account, the oldest first: to be claimed for one.',
  handle: async (app) => {
    const found = await app.payers.unclaimed(most + 1);
    const items = found.slice(0, most).map(({ name, account, amountMicros, at }) => ({
      ...{ payment: name, named: account, amount: toUsd(amountMicros), received_at: isoOrNull(at) },
    }));
    return { items, more: found.length > most };
  },
});

export const claimOne = opsRoute({
  ...{ method: 'POST', path: '/ops/api/payments/{payment}/claim' },
  summary: 'Books a payment that was received for no known account to the one it was meant for.',
  params: object({ payment: text().max(255) }),
  body: object({ account: idText() }),
  handle: async (app, request) => {
    const { payment: name } = request.params;
    const { account: accountId } = request.body;
    const what = { action: 'payment.claim', subject: accountId, detail: { payment: name } };
    await act(app, request, what, () => claimPayment(app, { name, accountId }));
    return describeAccount(app, accountId);
  },
});

export const paymentRoutes = [unclaimedPayments, claimOne];

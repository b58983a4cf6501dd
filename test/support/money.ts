// Money for accounts that tests and benchmarks make: through the product where one account is made, in bulk else.

import { deposit } from '../../lib/billing/credit.ts';
import type { Poster } from '../../lib/billing/post.ts';
import type { Posted } from '../../lib/billing/posting-store.ts';
import type { Database } from '../../lib/infra/mysql.ts';
import { systemClock } from '../../lib/kernel/clock.ts';
import { idBytes, newId } from '../../lib/kernel/ids.ts';

const usd = 1_000_000;

/** A deposit of that many USD. */
export const fund = (poster: Poster, accountId: string, amount: number): Promise<Posted> =>
  deposit(
    { poster, clock: systemClock },
    { accountId, amountMicros: Math.round(amount * usd), name: `test-${newId()}`, note: null },
  );

/** The columns of a funded account and its row of the ledger, for bulk inserts. */
export const fundedRow = (accountId: string, amount: number, now: number) => ({
  account: { balance_micros: amount * usd, ledger_seq: 1, deposited_at: now },
  ledger: {
    ...{ account_id: idBytes(accountId), seq: 1, id: idBytes(newId()), reference: 'deposit:seed' },
    ...{ kind: 'deposit', counter: 'cash', amount_micros: amount * usd },
    balance_after: amount * usd,
  },
});

/** Inserts those rows of the ledger. */
export const insertLedger = async (
  db: Database,
  rows: ReturnType<typeof fundedRow>['ledger'][],
): Promise<void> => {
  await db.batchInsert('ledger', rows, 500);
};

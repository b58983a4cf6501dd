// Proving the books: balance, ledger, messages and TOTP log must tell the same story, account by account.
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import type { ReconcileStore } from './reconcile-store.ts';

/** What may still be on its way through a queue is not looked at. */
const settledMs = 10 * minute;

export type Difference = { check: string; accountId: string; detail: string };

export type Reconciliation = { accounts: number; differences: Difference[]; through: number };

/**
 * Compares everything that happened up to ten minutes ago, or up to `through` (ms); changes nothing. Each check is one
 * statement over all accounts that answers only what differs.
 */
export const reconcile = async (
  { books, clock }: { books: ReconcileStore; clock: Clock },
  through = clock.now() - settledMs,
): Promise<Reconciliation> => {
  const differences: Difference[] = [];
  for (const check of books.checks) {
    for (const { accountId, detail } of await books.run(check, through)) {
      differences.push({ check, accountId, detail });
    }
  }
  return { accounts: await books.countAccounts(), differences, through };
};

// The ledger as its owner reads it: page by page, or all of it as CSV.

import { csvLine } from '../kernel/csv.ts';
import { cursorOf } from '../kernel/cursor.ts';
import { idTime, toMessageId } from '../kernel/ids.ts';
import { toUsd } from '../kernel/money.ts';
import type { Mode } from '../messages/rules.ts';
import type { LedgerRow, LedgerStore } from './ledger-store.ts';

type Deps = { ledger: LedgerStore };

/** Only live messages move money, so a test key, which reads the sandbox alone, has no transactions. */
const isReadable = (keyMode: Mode | undefined): boolean => keyMode !== 'test';

const exportPage = 1_000;

const view = (row: LedgerRow) => ({
  id: row.id,
  kind: row.kind,
  amount: toUsd(row.amountMicros),
  balance_after: toUsd(row.balanceAfter),
  reference: row.reference,
  message_id: row.messageId === null ? null : toMessageId(row.messageId),
  created_at: new Date(idTime(row.id)).toISOString(),
});

/** GET /v1/clients/transactions: newest first; `keyMode` is the mode of the key that asks, undefined: a session. */
export const listTransactions = async (
  { ledger }: Deps,
  accountId: string,
  given: { before?: string | undefined; limit: number; keyMode: Mode | undefined },
) => {
  const { before, limit, keyMode } = given;
  if (!isReadable(keyMode)) return { items: [], next_before: null };
  const found = await ledger.list(accountId, { before, limit: limit + 1 });
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return {
    items: items.map(view),
    next_before: found.length > limit && last ? cursorOf(last.id) : null,
  };
};

/** All transactions as lines of CSV, read in pages so that memory stays what it is. */
export async function* transactionsCsv(
  { ledger }: Deps,
  accountId: string,
  keyMode: Mode | undefined,
) {
  yield csvLine(['id', 'created_at', 'kind', 'amount', 'balance_after', 'reference', 'message_id']);
  if (!isReadable(keyMode)) return;
  let before: string | undefined;
  for (;;) {
    const rows = await ledger.list(accountId, { before, limit: exportPage });
    for (const row of rows) {
      const { id, created_at: at, kind, amount, balance_after: after, ...rest } = view(row);
      yield csvLine([id, at, kind, amount, after, rest.reference, rest.message_id]);
    }
    if (rows.length < exportPage) return;
    before = rows.at(-1)?.id;
  }
}

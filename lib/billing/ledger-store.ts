// The ledger in MySQL, as it is read, and the plan an account is on.
import { advanceEpoch } from '../accounts/epoch-store.ts';
import type { Database } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import { balanceColumns, createPostingStore, toBalance } from './posting-store.ts';
import type { Balance, Posting } from './rules.ts';
import { createSentStore } from './sent-store.ts';

type Row = Record<string, unknown>;

export type LedgerStore = ReturnType<typeof createLedgerStore>;

export type LedgerRow = {
  id: string;
  seq: number;
  kind: Posting['kind'];
  amountMicros: number;
  balanceAfter: number;
  reference: string;
  messageId: string | null;
};

const fromLedgerRow = (row: Row): LedgerRow => ({
  id: idText(row.id as Buffer),
  seq: Number(row.seq),
  kind: row.kind as Posting['kind'],
  amountMicros: Number(row.amount_micros),
  balanceAfter: Number(row.balance_after),
  reference: String(row.reference),
  messageId: row.message_id === null ? null : idText(row.message_id as Buffer),
});

export const createLedgerStore = (db: Database) => ({
  ...createSentStore(db),
  ...createPostingStore(db),

  balance: async (accountId: string): Promise<Balance | undefined> => {
    const row = await db<Row>('accounts')
      .where({ id: idBytes(accountId) })
      .first(balanceColumns);
    return row === undefined ? undefined : toBalance(row);
  },

  /** What was booked for an account under a reference. */
  findPosting: async (accountId: string, reference: string): Promise<LedgerRow | undefined> => {
    const row = await db<Row>('ledger')
      .where({ account_id: idBytes(accountId), reference })
      .first();
    return row === undefined ? undefined : fromLedgerRow(row);
  },

  /**
   * Newest first by sequence, since the ids of several workers follow several clocks; at most `limit`, behind the row
   * with the id `before`.
   */
  list: async (
    accountId: string,
    { before, limit }: { before: string | undefined; limit: number },
  ): Promise<LedgerRow[]> => {
    const account_id = idBytes(accountId);
    const query = db<Row>('ledger').where({ account_id }).orderBy('seq', 'desc').limit(limit);
    if (before !== undefined) {
      const row = db<Row>('ledger').where({ account_id, id: idBytes(before) });
      query.where('seq', '<', row.select('seq').limit(1));
    }
    return (await query).map(fromLedgerRow);
  },

  /** Changes the plan, and writes what is to be told of it; false when another plan is in force. */
  setPlan: (
    accountId: string,
    from: string,
    to: string,
    told: readonly EventWire[] = [],
  ): Promise<boolean> =>
    db.transaction(async (trx) => {
      const account = { id: idBytes(accountId), billing_plan: from };
      const changed = await trx('accounts').where(account).update({ billing_plan: to });
      if (changed === 0) return false;
      await insertNews(trx, told);
      await advanceEpoch(trx, accountId);
      return true;
    }),

  grantTrial: async (accountId: string, verifications: number): Promise<void> => {
    await db('accounts')
      .where({ id: idBytes(accountId) })
      .update({ trial_granted: verifications });
  },
});

// Requests for more capacity in MySQL.

import { advanceEpoch } from '../accounts/epoch-store.ts';
import type { Account } from '../accounts/rules.ts';
import { type Database, withLockRetry } from '../infra/mysql.ts';
import type { EventWire } from '../jobs.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { insertNews } from '../messages/news-store.ts';
import type { CapacityRequest, CapacityStatus } from './rules.ts';

type Row = Record<string, unknown>;

const numberOrNull = (value: unknown): number | null => (value === null ? null : Number(value));
const textOrNull = (value: unknown): string | null => (value === null ? null : String(value));

const fromRow = (row: Row): CapacityRequest => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  sustained: Number(row.sustained),
  burst: Number(row.burst),
  expectedSustained: Number(row.expected_sustained),
  expectedPeak: Number(row.expected_peak),
  justification: String(row.justification),
  facts: textOrNull(row.facts),
  status: row.status as CapacityStatus,
  updatedAt: Number(row.updated_at),
  cancelledAt: numberOrNull(row.cancelled_at),
  reviewedAt: numberOrNull(row.reviewed_at),
});

export type Settlement = {
  status: Exclude<CapacityStatus, 'pending'>;
  at: number;
  note: string | null;
  tier: Account['tier'] | null;
  told: EventWire;
};

// The epoch comes last in its transaction: every process forgets the account with the commit.
const writeTier = async (
  trx: Database,
  accountId: string,
  tier: Account['tier'],
): Promise<void> => {
  const { name, perMinute, expiresAt } = tier;
  await trx('accounts')
    .where({ id: idBytes(accountId) })
    .update({ tier: name, tier_per_minute: perMinute, tier_expires_at: expiresAt });
  await advanceEpoch(trx, accountId);
};

export type CapacityStore = ReturnType<typeof createCapacityStore>;

export const createCapacityStore = (db: Database) => ({
  /** Answers false when a request of the account is pending already. */
  insert: (request: CapacityRequest, told: EventWire): Promise<boolean> =>
    db.transaction(async (trx) => {
      const account_id = idBytes(request.accountId);
      // The account's row stands for "one pending at a time".
      await trx('accounts').where({ id: account_id }).forUpdate().first('id');
      const pending = await trx('capacity_requests')
        .where({ account_id, status: 'pending' })
        .first('id');
      if (pending !== undefined) return false;
      await trx('capacity_requests').insert({
        ...{ id: idBytes(request.id), account_id, sustained: request.sustained },
        ...{ burst: request.burst, expected_sustained: request.expectedSustained },
        ...{ expected_peak: request.expectedPeak, justification: request.justification },
        ...{ facts: request.facts, status: request.status, updated_at: request.updatedAt },
      });
      await insertNews(trx, [told]);
      return true;
    }),

  find: async (accountId: string, id: string): Promise<CapacityRequest | undefined> => {
    const row = await db<Row>('capacity_requests')
      .where({ id: idBytes(id), account_id: idBytes(accountId) })
      .first();
    return row === undefined ? undefined : fromRow(row);
  },

  /** Newest first; at most `limit`, older than `before`. */
  list: async (
    accountId: string,
    { before, limit }: { before: string | undefined; limit: number },
  ): Promise<CapacityRequest[]> => {
    const query = db<Row>('capacity_requests')
      .where({ account_id: idBytes(accountId) })
      .orderBy('id', 'desc')
      .limit(limit);
    if (before !== undefined) query.where('id', '<', idBytes(before));
    return (await query).map(fromRow);
  },

  /**
   * Moves a pending request on, with the tier that an approval leads to and what is to be told, or nothing of it; false
   * when it is not pending (any more).
   */
  settle: async (accountId: string, id: string, to: Settlement): Promise<boolean> =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const account_id = idBytes(accountId);
        const changed = await trx('capacity_requests')
          .where({ id: idBytes(id), account_id, status: 'pending' })
          .update({
            ...{ status: to.status, updated_at: to.at, review_note: to.note },
            ...(to.status === 'cancelled' ? { cancelled_at: to.at } : { reviewed_at: to.at }),
          });
        if (changed === 0) return false;
        await insertNews(trx, [to.told]);
        if (to.tier !== null) await writeTier(trx, accountId, to.tier);
        return true;
      }),
    ),
});

// Replays in MySQL: jobs that put what was held back on its way, a few at a time, and how far each has come.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import { numberOrNull, type Row } from './delivery.ts';

export type Replay = {
  id: string;
  accountId: string;
  /** Deliveries that were held when it began, and how many of them are on their way. */
  total: number;
  released: number;
  createdAt: number;
  finishedAt: number | null;
};

const toReplay = (row: Row): Replay => ({
  id: idText(row.id as Buffer),
  accountId: idText(row.account_id as Buffer),
  total: Number(row.total),
  released: Number(row.released),
  createdAt: Number(row.created_at),
  finishedAt: numberOrNull(row.finished_at),
});

// A new life: the schedule begins again, and its 72 hours count from here.
const release = `UPDATE webhook_deliveries SET status = 'waiting', tries = 0, released_at = ?, next_attempt_at = ?
  WHERE account_id = ? AND status = 'held' ORDER BY id LIMIT ?`;

export const createReplayStore = (db: Database) => ({
  /** The newest replay of an account. */
  lastReplay: async (accountId: string): Promise<Replay | undefined> => {
    const row = await db<Row>('webhook_replays')
      .where({ account_id: idBytes(accountId) })
      .orderBy('id', 'desc')
      .first();
    return row && toReplay(row);
  },

  /** A replay that is due, leased for `leaseMs`; undefined when there is none. */
  takeReplay: (now: number, leaseMs: number): Promise<Replay | undefined> =>
    db.transaction(async (trx) => {
      const row = await trx<Row>('webhook_replays')
        .where('next_at', '<=', now)
        .orderBy('next_at')
        .forUpdate()
        .skipLocked()
        .first();
      if (!row) return undefined;
      await trx('webhook_replays')
        .where({ id: row.id })
        .update({ next_at: now + leaseMs });
      return toReplay(row);
    }),

  /** How much of an account waits for its endpoint's turn, up to `most`. */
  countWaiting: async (accountId: string, most: number): Promise<number> => {
    const rows: Row[] = await db('webhook_deliveries')
      .where({ account_id: idBytes(accountId), status: 'waiting' })
      .select('id')
      .limit(most);
    return rows.length;
  },

  /**
   * One step of a replay: the oldest `limit` of what is held go out. It has ended when nothing is left, or at once
   * when the endpoint was given up again. Answers how many were released.
   */
  release: (replay: Replay, given: { now: number; limit: number; againMs: number }) =>
    withLockRetry(() =>
      db.transaction(async (trx) => {
        const { now, limit, againMs } = given;
        const account_id = idBytes(replay.accountId);
        const account = await trx<Row>('accounts')
          .where({ id: account_id })
          .forUpdate()
          .first('webhook_disabled_at');
        const usable = account !== undefined && account.webhook_disabled_at === null;
        const [{ affectedRows }] = usable
          ? ((await trx.raw(release, [now, now, account_id, limit])) as [{ affectedRows: number }])
          : [{ affectedRows: 0 }];
        const ended = affectedRows < limit;
        await trx('webhook_replays')
          .where({ id: idBytes(replay.id) })
          .update({
            released: replay.released + affectedRows,
            next_at: ended ? null : now + againMs,
            finished_at: ended ? now : null,
          });
        return affectedRows;
      }),
    ),

  /** Comes back to a replay later. */
  postponeReplay: async (replay: Replay, at: number): Promise<void> => {
    await db('webhook_replays')
      .where({ id: idBytes(replay.id) })
      .update({ next_at: at });
  },
});

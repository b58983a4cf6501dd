// What an account has sent: for the allowance of the shared number, and for what unverified messages cost the platform.
import type { Database } from '../infra/mysql.ts';
import { day, hour } from '../kernel/clock.ts';
import { idAt, idBytes } from '../kernel/ids.ts';
import type { SharedCount } from './credit-store.ts';

type Row = Record<string, unknown>;

/** An hour (UTC hour since 1970) of an account's live messages to a country. */
export type ExposedCount = {
  hour: number;
  country: string;
  unverified: number;
  chargedMicros: number;
};

/** Messages that are past their retention: of these the daily figures know how many, but not whose number it was. */
const countPast = async (db: Database, account_id: Buffer, from: number, until: number) => {
  const [past] = await db<Row>('rollup_days')
    .where({ account_id, mode: 'live' })
    .where('day', '>=', Math.ceil(from / day))
    .where('day', '<', Math.floor(until / day))
    .sum({ accepted: 'accepted', verified: 'verified' });
  const verified = Number(past?.verified ?? 0);
  return { unverified: Math.max(Number(past?.accepted ?? 0) - verified, 0), verified };
};

/** What the rows of one hour and country say together. */
const exposedOf = (rows: readonly Row[]): ExposedCount => {
  const total = (column: string) => rows.reduce((sum, row) => sum + Number(row[column]), 0);
  const [requested, accepted] = [total('requested'), total('accepted')];
  // Those that no channel took failed as well.
  const failed = Math.max(total('failed') - (requested - accepted), 0);
  return {
    hour: Number(rows[0]?.hour),
    country: String(rows[0]?.country),
    unverified: Math.max(accepted - total('verified') - failed, 0),
    chargedMicros: total('spent_micros'),
  };
};

export const createSentStore = (db: Database) => ({
  /**
   * Live messages that a channel took of an account, but those of its own number and those that failed: how many are
   * verified and how many are not, each counted up to `most`. Counted from when its grant began.
   */
  countShared: async (accountId: string, most: number): Promise<SharedCount> => {
    const account_id = idBytes(accountId);
    const [[account], [state]] = await Promise.all([
      db<Row>('accounts').where({ id: account_id }).select('shared_from'),
      db<Row>('rollup_state').where({ id: 1 }).select('kept_from_hour'),
    ]);
    const from = Number(account?.shared_from ?? 0);
    const keptFrom = Number(state?.kept_from_hour ?? 0) * hour;
    const past = await countPast(db, account_id, from, keptFrom);
    const count = async (verified: boolean): Promise<number> => {
      const some = db('messages')
        .where({ account_id, mode: 'live', own: false })
        .where('id', '>=', idBytes(idAt(Math.max(from, keptFrom))))
        .whereNotNull('accepted_at')
        .whereNot({ status: 'failed' })
        .where('status', verified ? '=' : '<>', 'verified')
        .select(db.raw('1'))
        .limit(most)
        .as('some');
      const [row] = await db.from(some).count({ count: '*' });
      return Number(row?.count ?? 0);
    };
    const [unverified, verified] = await Promise.all([count(false), count(true)]);
    return {
      unverified: Math.min(unverified + past.unverified, most),
      verified: Math.min(verified + past.verified, most),
    };
  },

  /**
   * Live messages since an hour, from the hourly figures: a few rows, however much was sent. They do not tell whose
   * number it was nor the plan, so that those of the account's own number count as well: too many rather than too few.
   */
  countExposed: async (accountId: string, fromHour: number): Promise<ExposedCount[]> => {
    const rows = await db<Row>('rollup_hours')
      .where({ account_id: idBytes(accountId), mode: 'live' })
      .where('hour', '>=', fromHour)
      .select('hour', 'country', 'requested', 'accepted', 'verified', 'failed', 'spent_micros');
    // Added up here: grouping in the statement would sort, and a caller waits for it.
    return [...Map.groupBy(rows, ({ hour, country }) => `${hour} ${country}`).values()].map(
      exposedOf,
    );
  },
});

// How much an account has sent, for the allowance of the trial: counted so that no retention makes it new.
import type { Database } from '../infra/mysql.ts';
import { day, hour } from '../kernel/clock.ts';
import { idAt, idBytes } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

export const createSentStore = (db: Database) => ({
  /**
   * Live messages that a channel ever took of an account, but those of its own number, counted up to `most`. Those past
   * their retention are in the daily figures, which do not say whose number it was: they count all the same.
   */
  countMessages: async (accountId: string, most: number): Promise<number> => {
    const live = { account_id: idBytes(accountId), mode: 'live' };
    const [state] = await db<Row>('rollup_state').where({ id: 1 }).select('kept_from_hour');
    const keptFrom = Number(state?.kept_from_hour ?? 0) * hour;
    const [past] = await db<Row>('rollup_days')
      .where(live)
      .where('day', '<', Math.floor(keptFrom / day))
      .sum({ accepted: 'accepted' });
    const some = db('messages')
      .where({ ...live, own: false })
      .whereNotNull('accepted_at')
      .where('id', '>=', idBytes(idAt(keptFrom)))
      .select(db.raw('1'))
      .limit(most)
      .as('some');
    const [row] = await db.from(some).count({ count: '*' });
    return Math.min(Number(row?.count ?? 0) + Number(past?.accepted ?? 0), most);
  },
});

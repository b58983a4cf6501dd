// Deleting what is over of sessions, in batches that lock little.
import type { Database } from '../infra/mysql.ts';

type Row = Record<string, unknown>;

export const createPurge = (db: Database) => ({
  /** Deletes at most `most` sessions whose time is up, with their tokens; answers how many sessions. */
  purgeEnded: async (now: number, most: number): Promise<number> => {
    const rows = await db<Row>('sessions')
      .where('purge_at', '<', now)
      .orderBy('purge_at')
      .limit(most)
      .select('id');
    if (rows.length === 0) return 0;
    const ids = rows.map(({ id }) => id as Buffer);
    // The tokens first: a session is found by them, and one that is gone leaves none behind.
    await db('session_tokens').whereIn('session_id', ids).delete();
    await db('sessions').whereIn('id', ids).delete();
    return ids.length;
  },

  /** Deletes at most `most` tokens that have expired; answers how many. */
  purgeTokens: async (now: number, most: number): Promise<number> =>
    Number(await db('session_tokens').where('expires_at', '<', now).limit(most).delete()),
});

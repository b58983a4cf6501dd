// Untold news in MySQL.
import type { Database } from '../infra/mysql.ts';
import { idBytes, idText } from '../kernel/ids.ts';
import type { News } from './news.ts';

type Row = Record<string, unknown>;

/** Writes news inside the transaction of what it tells of. */
export const insertNews = async (trx: Database, list: readonly News[]): Promise<void> => {
  if (list.length === 0) return;
  await trx('billing_news').insert(
    list.map(({ id, accountId, type, subject, data, at }) => ({
      ...{ id: idBytes(id), account_id: idBytes(accountId), type, subject },
      ...{ data: JSON.stringify(data), created_at: at },
    })),
  );
};

export type NewsStore = ReturnType<typeof createNewsStore>;

export const createNewsStore = (db: Database) => ({
  /** The oldest untold news from before `at` (ms). */
  leftBefore: async (at: number, limit: number): Promise<News[]> => {
    const rows = await db<Row>('billing_news')
      .where('created_at', '<', at)
      .orderBy('created_at')
      .limit(limit);
    return rows.map((row) => ({
      id: idText(row.id as Buffer),
      accountId: idText(row.account_id as Buffer),
      type: row.type as News['type'],
      subject: String(row.subject),
      data: JSON.parse(String(row.data)) as News['data'],
      at: Number(row.created_at),
    }));
  },

  strike: async (id: string): Promise<void> => {
    await db('billing_news')
      .where({ id: idBytes(id) })
      .delete();
  },
});

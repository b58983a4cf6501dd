// Secrets at rest in MySQL, place by place, as resealing reads and replaces them.
import type { Database } from '../infra/mysql.ts';
import { idText } from '../kernel/ids.ts';

type Row = Record<string, unknown>;

/** Columns that hold sealed texts; `key` names the record a text was sealed for. */
export type SealedColumn = { table: string; key: string; column: string; keyIs: 'id' | 'text' };

/** A sealed text of a column, with the key of its row as text. */
export type SealedText = { key: string; sealed: string };

export type ResealStore = ReturnType<typeof createResealStore>;

const bytesOf = (key: string): Buffer => Buffer.from(key.replaceAll('-', ''), 'hex');

export const createResealStore = (db: Database) => {
  const keyOf = ({ keyIs }: SealedColumn, key: string): Buffer | string =>
    keyIs === 'id' ? bytesOf(key) : key;
  const older = ({ table, column }: SealedColumn, prefix: string) =>
    db<Row>(table)
      .whereNotNull(column)
      .whereRaw('LEFT(??, ?) <> ?', [column, prefix.length, prefix]);

  return {
    /** At most `limit` texts that do not begin with `prefix`, in the order of their keys, behind the key `after`. */
    page: async (
      place: SealedColumn,
      { prefix, after, limit }: { prefix: string; after: string | undefined; limit: number },
    ): Promise<SealedText[]> => {
      const query = older(place, prefix)
        .orderBy(place.key)
        .limit(limit)
        .select(place.key, place.column);
      if (after !== undefined) query.where(place.key, '>', keyOf(place, after));
      const rows = (await query) as Row[];
      return rows.map((row) => ({
        key: place.keyIs === 'id' ? idText(row[place.key] as Buffer) : String(row[place.key]),
        sealed: String(row[place.column]),
      }));
    },

    /** How many texts do not begin with `prefix`. */
    count: async (place: SealedColumn, prefix: string): Promise<number> => {
      const [row] = await older(place, prefix).count({ count: '*' });
      return Number((row as Row | undefined)?.count ?? 0);
    },

    /**
     * How many events for former webhook addresses carry a secret that does not begin with `prefix`. They are not
     * resealed: each is sent or dropped within a quarter of an hour.
     */
    countFormer: async (prefix: string): Promise<number> => {
      const [row] = await db<Row>('former_address_events')
        .whereRaw("REPLACE(secrets, ?, '') LIKE '%\"v1.%'", [`"${prefix}`])
        .count({ count: '*' });
      return Number((row as Row | undefined)?.count ?? 0);
    },

    /** Puts a text in the place of `before`; false when another one is there by now. */
    replace: async (
      place: SealedColumn,
      { key, before, sealed }: { key: string; before: string; sealed: string },
    ): Promise<boolean> =>
      (await db(place.table)
        .where({ [place.key]: keyOf(place, key), [place.column]: before })
        .update({ [place.column]: sealed })) === 1,
  };
};

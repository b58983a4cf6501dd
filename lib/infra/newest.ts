// The newest rows of some kinds: each kind is read off its own end of an index, so that rare ones cost what common ones do.
import { idAt } from '../kernel/ids.ts';
import { asOfOneMoment, type Database } from './mysql.ts';

/**
 * A table read by one index and no other: for a page by id the planner may take the primary key instead, which is
 * every account's, and reads on until it has found enough of this one's rows.
 */
export const byIndex = (db: Database, table: string, index: string) =>
  db.raw('?? FORCE INDEX (??)', [table, index]);

/** Values of the columns that tell kinds apart, in the order of the index. */
export type Kind = readonly (string | null)[];

/** All kinds that a filter lets through: for each column the values that are wanted. */
export const kindsOf = (wanted: readonly (readonly (string | null)[])[]): Kind[] =>
  wanted.reduce<Kind[]>(
    (kinds, values) => kinds.flatMap((kind) => values.map((value) => [...kind, value])),
    [[]],
  );

/** Ids are times, so the cursor of a page and the end of a span (ms, exclusive) are one bound: the lower one. */
export const belowOf = (given: {
  before: string | undefined;
  to: number | undefined;
}): string | undefined => {
  const { before, to } = given;
  const bounds = [before, to === undefined ? undefined : idAt(to)].filter((id) => id !== undefined);
  return bounds.toSorted()[0];
};

export type Newest = {
  table: string;
  /** Over (account_id, the columns of the kinds, id). */
  index: string;
  columns: readonly string[];
  kinds: readonly Kind[];
  accountId: Buffer;
  /** Ids: inclusive, exclusive. */
  from: Buffer | undefined;
  below: Buffer | undefined;
};

const newestSql = (limit: number, asked: Newest) => {
  const { table, index, columns, kinds, accountId, from, below } = asked;
  const bounds = `${from ? ' AND id >= ?' : ''}${below ? ' AND id < ?' : ''}`;
  const boundsOf = [from, below].filter((bound) => bound !== undefined);
  const parts = kinds.map((kind) => {
    const is = columns.map((name, at) => `${name} ${kind[at] === null ? 'IS NULL' : '= ?'}`);
    return `(SELECT id FROM ${table} FORCE INDEX (${index})
      WHERE account_id = ? AND ${is.join(' AND ')}${bounds} ORDER BY id DESC LIMIT ?)`;
  });
  const bindings = kinds.flatMap((kind) => [
    accountId,
    ...kind.filter((value) => value !== null),
    ...boundsOf,
    limit,
  ]);
  return { sql: parts.join(' UNION ALL '), bindings };
};

type Row = Record<string, unknown> & { id: Buffer };

const newestFirst = (one: Buffer, other: Buffer): number => Buffer.compare(other, one);

/**
 * The newest `limit` rows of these kinds, newest first. A filter over the account's rows would read them all to find
 * a few; here each kind gives its newest ids from the index alone, and only the rows that are wanted are read. What is
 * found as of a kind is shown as that.
 */
export const rowsOfKinds = (db: Database, limit: number, asked: Newest): Promise<Row[]> => {
  const { sql, bindings } = newestSql(limit, asked);
  return asOfOneMoment(db, async (trx) => {
    const [found] = (await trx.raw(sql, bindings)) as [Row[]];
    const ids = found.map(({ id }) => id).toSorted(newestFirst);
    if (ids.length === 0) return [];
    const rows: Row[] = await trx(asked.table).whereIn('id', ids.slice(0, limit));
    return rows.toSorted((one, other) => newestFirst(one.id, other.id));
  });
};

// Tables kept by the week: which partitions there are, and the SQL that makes them. Weeks begin on Monday, UTC.
import { day, hour } from './clock.ts';
import { idAt } from './ids.ts';

export const week = 7 * day;

/** A table that is cut by time: `id` columns carry it in their first bits (UUIDv7), `hour` columns count hours. */
export type Partitioned = { table: string; column: string; by: 'id' | 'hour' };

// Not here: what is about money (never dropped), and what is unique by something that has no time in it, since every
// unique key of a partitioned table must hold the partition's column.
export const partitionedTables: readonly Partitioned[] = [
  { table: 'message_events', column: 'message_id', by: 'id' },
  { table: 'messages', column: 'id', by: 'id' },
  { table: 'totp_log', column: 'id', by: 'id' },
  { table: 'rollup_hours', column: 'hour', by: 'hour' },
];

/** What is older than the first week, and what is newer than the last: no row is ever without a place. */
export const firstName = 'w00000000';
export const lastName = 'w99999999';

// 1970 began on a Thursday.
const sinceMonday = 3 * day;

/** The Monday of the week that `at` lies in (ms). */
export const weekOf = (at: number): number =>
  Math.floor((at + sinceMonday) / week) * week - sinceMonday;

/** A week's partition is named by its Monday: w20261123. */
export const nameOf = (monday: number): string =>
  `w${new Date(monday).toISOString().slice(0, 10).replaceAll('-', '')}`;

/** The Monday in a name; undefined for the first and the last partition, and for names that are none of ours. */
export const mondayOf = (name: string): number | undefined => {
  const [, year, month, date] = /^w(\d{4})(\d{2})(\d{2})$/.exec(name) ?? [];
  const at = Date.parse(`${year}-${month}-${date}T00:00:00Z`);
  return Number.isNaN(at) || name === firstName || name === lastName ? undefined : at;
};

const bound = (by: Partitioned['by'], at: number): string =>
  by === 'id' ? `x'${idAt(at).replaceAll('-', '')}'` : String(at / hour);

const weekSql = (by: Partitioned['by'], monday: number): string =>
  `PARTITION ${nameOf(monday)} VALUES LESS THAN (${bound(by, monday + week)})`;

const lastSql = `PARTITION ${lastName} VALUES LESS THAN (MAXVALUE)`;

/** Cuts a table into these weeks, with what is before and after them. */
export const cutSql = ({ table, column, by }: Partitioned, mondays: readonly number[]): string => {
  const first = `PARTITION ${firstName} VALUES LESS THAN (${bound(by, mondays[0] ?? 0)})`;
  const parts = [first, ...mondays.map((monday) => weekSql(by, monday)), lastSql];
  return `ALTER TABLE ${table} PARTITION BY RANGE COLUMNS(${column}) (${parts.join(', ')})`;
};

/** Adds weeks behind the last one; rows that came before their week are put where they belong. */
export const addSql = ({ table, by }: Partitioned, mondays: readonly number[]): string => {
  const parts = [...mondays.map((monday) => weekSql(by, monday)), lastSql];
  return `ALTER TABLE ${table} REORGANIZE PARTITION ${lastName} INTO (${parts.join(', ')})`;
};

export const dropSql = ({ table }: Partitioned, names: readonly string[]): string =>
  `ALTER TABLE ${table} DROP PARTITION ${names.join(', ')}`;

// What customers read of their rollups: counts added up over time, by what they ask for.
import type { Database } from '../infra/mysql.ts';
import { hour } from '../kernel/clock.ts';
import { idBytes } from '../kernel/ids.ts';
import { histogramColumns, measures, plainMeasures, showingSql } from './measures.ts';
import { partsOf, type Range } from './months.ts';
import { addCounts, type Counts } from './rules.ts';

type Row = Record<string, unknown>;

/** What counts can be told apart by: `time` is the day, or the hour. */
export type Dimension = 'time' | 'channel' | 'country' | 'mode';

export type Tally = Counts & {
  /** Begin of the span, ms; 0 when not asked for. */
  at: number;
  channel: string;
  country: string;
  mode: string;
};

export type Asked = {
  /** Ms; whole spans. */
  from: number;
  to: number;
  spanMs: number;
  by: Dimension | undefined;
  /** Live messages alone, or test messages too. */
  modes: readonly ('live' | 'test')[];
  /** Months before this one are added up and may be read as such; default: none. */
  monthsUntil?: number;
  /** Latencies too: without them a quarter is read. */
  latencies?: boolean;
};

const numbersOf = (row: Row, names: readonly string[]): number[] =>
  names.map((name) => Number(row[name] ?? 0));

const toTally = (row: Row, spanMs: number): Tally => {
  const numbers = numbersOf(row, measures);
  const [requested = 0, accepted = 0, delivered = 0, verified = 0, failed = 0, expired = 0] =
    numbers;
  const [spentMicros = 0, deliverMs = 0, verifyMs = 0] = numbers.slice(6);
  return {
    at: Number(row.time ?? 0) * spanMs,
    ...{ channel: String(row.channel), country: String(row.country), mode: String(row.mode) },
    ...{ requested, accepted, delivered, verified, failed, expired },
    ...{ spentMicros, deliverMs, verifyMs },
    deliver: numbersOf(row, histogramColumns.deliver),
    verify: numbersOf(row, histogramColumns.verify),
  };
};

type Table = { table: string; unit: 'hour' | 'day' | 'month'; range: Range };

/** The rollups that make a period up: as few rows as there can be. */
const tablesOf = ({ from, to, spanMs, by, monthsUntil = 0 }: Asked): Table[] => {
  if (spanMs === hour) {
    const range = { from: Math.floor(from / hour), to: Math.floor(to / hour) };
    return [{ table: 'rollup_hours', unit: 'hour', range }];
  }
  const { days, months } = partsOf({ from, to }, by === 'time' ? 0 : monthsUntil);
  return [
    ...days.map((range) => ({ table: 'rollup_days', unit: 'day', range }) as const),
    ...months.map((range) => ({ table: 'rollup_months', unit: 'month', range }) as const),
  ];
};

/** What several rollups say of the same is added up. */
const together = (tallies: readonly Tally[]): Tally[] => {
  const keyOf = ({ channel, country, mode }: Tally) => `${channel} ${country} ${mode}`;
  return [...Map.groupBy(tallies, keyOf).values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first, ...others.reduce<Counts>(addCounts, first) }],
  );
};

// In a part of a UNION an order counts only with a limit: without one MariaDB would sort the groups.
const unsorted = 'ORDER BY NULL LIMIT 100000';

export type TotalsStore = ReturnType<typeof createTotalsStore>;

export const createTotalsStore = (db: Database) => ({
  /** The counts of an account's messages created in [from, to): one row per value of `by` that occurs, or one. */
  totals: async (accountId: string, asked: Asked): Promise<Tally[]> => {
    const { spanMs, by, modes, latencies } = asked;
    const adding = showingSql(latencies ? measures : plainMeasures);
    const parts = tablesOf(asked).map(({ table, unit, range }) => {
      const column = by === 'time' ? unit : by;
      const named = column === undefined ? '' : `${column} AS ${by}, `;
      const grouped = column === undefined ? '' : `GROUP BY ${column} ${unsorted}`;
      return {
        sql: `(SELECT ${named}${adding} FROM ${table}
          WHERE account_id = ? AND mode IN (?) AND ${unit} >= ? AND ${unit} < ? ${grouped})`,
        bindings: [idBytes(accountId), modes, range.from, range.to],
      };
    });
    const [rows] = (await db.raw(
      parts.map(({ sql }) => sql).join(' UNION ALL '),
      parts.flatMap(({ bindings }) => bindings) as unknown as string[],
    )) as [Row[]];
    const tallies = rows.map((row) => toTally(row, spanMs));
    return parts.length === 1 ? tallies : together(tallies);
  },
});

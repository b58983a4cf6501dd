// What customers read of their rollups: counts added up over time, by what they ask for.
import type { Database } from '../infra/mysql.ts';
import { day, hour } from '../kernel/clock.ts';
import { idBytes } from '../kernel/ids.ts';
import { histogramColumns, measures, plainMeasures, showingSql } from './measures.ts';
import type { Counts } from './rules.ts';

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

export type TotalsStore = ReturnType<typeof createTotalsStore>;

export const createTotalsStore = (db: Database) => ({
  /** The counts of an account's messages created in [from, to): one row per value of `by` that occurs, or one. */
  totals: async (accountId: string, asked: Asked): Promise<Tally[]> => {
    const { from, to, spanMs, by, modes, latencies } = asked;
    const adding = showingSql(latencies ? measures : plainMeasures);
    const unit = spanMs === hour ? 'hour' : 'day';
    const unitMs = spanMs === hour ? hour : day;
    const column = by === 'time' ? unit : by;
    const named = column === undefined ? '' : `${column} AS ${by}, `;
    const grouped = column === undefined ? '' : `GROUP BY ${column} ORDER BY NULL`;
    const [rows] = (await db.raw(
      `SELECT ${named}${adding} FROM rollup_${unit}s
       WHERE account_id = ? AND mode IN (?) AND ${unit} >= ? AND ${unit} < ? ${grouped}`,
      [
        idBytes(accountId),
        modes as unknown as string,
        Math.floor(from / unitMs),
        Math.floor(to / unitMs),
      ],
    )) as [Row[]];
    return rows.map((row) => toTally(row, unitMs));
  },
});

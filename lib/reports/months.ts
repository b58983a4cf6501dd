// Months of UTC, counted from the year 0: which one a moment lies in, and which whole ones a period holds.
import { day } from '../kernel/clock.ts';

const perYear = 12;

export const monthOf = (at: number): number => {
  const date = new Date(at);
  return date.getUTCFullYear() * perYear + date.getUTCMonth();
};

/** When a month begins (ms). */
export const monthStart = (month: number): number =>
  Date.UTC(Math.floor(month / perYear), month % perYear);

/** News of a message comes within minutes: a month that ended a day ago hardly changes any more. */
const settlingMs = day;

/** Months before this one are over for good. */
export const closableUntil = (now: number): number => monthOf(now - settlingMs);

/** From (inclusive) to (exclusive), in whole units since their zero. */
export type Range = { from: number; to: number };

/** A period of whole days (ms) as the days and the months that make it up, months only before `monthsUntil`. */
export const partsOf = (
  { from, to }: Range,
  monthsUntil: number,
): { days: Range[]; months: Range[] } => {
  const whole = { from: monthOf(from - 1) + 1, to: Math.min(monthOf(to), monthsUntil) };
  const dayRange = (begin: number, end: number): Range[] =>
    begin < end ? [{ from: Math.floor(begin / day), to: Math.floor(end / day) }] : [];
  if (whole.from >= whole.to) return { days: dayRange(from, to), months: [] };
  const [begin, end] = [monthStart(whole.from), monthStart(whole.to)];
  return { days: [...dayRange(from, begin), ...dayRange(end, to)], months: [whole] };
};

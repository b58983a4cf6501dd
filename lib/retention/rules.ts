// Retention: which weeks a table must have, and which of them are past their time.
import { firstName, mondayOf, week, weekOf } from '../kernel/partitions.ts';

/** Weeks there are ahead of the current one, so that a worker may be away for a month. */
export const weeksAhead = 4;

/** With fewer than this many weeks ahead something is wrong. */
export const weeksAheadLeast = 1;

const isWeek = (monday: number | undefined): monday is number => monday !== undefined;

/** The Mondays of the named partitions, first to last. */
export const weeksIn = (names: readonly string[]): number[] =>
  names
    .map(mondayOf)
    .filter(isWeek)
    .toSorted((one, other) => one - other);

/** Mondays to be added behind the last week there is. */
export const weeksToAdd = (names: readonly string[], now: number): number[] => {
  const last = weeksIn(names).at(-1);
  const wanted = weekOf(now) + weeksAhead * week;
  // A table without any week begins with the current one.
  const missing: number[] = [];
  for (let at = last === undefined ? weekOf(now) : last + week; at <= wanted; at += week) {
    missing.push(at);
  }
  return missing;
};

/** Partitions all of whose rows were made more than `keepMs` ago. The current week is never among them. */
export const weeksToDrop = (names: readonly string[], now: number, keepMs: number): string[] => {
  const oldest = now - keepMs;
  const [first] = weeksIn(names);
  return names.filter((name) => {
    if (name === firstName) return first !== undefined && first <= oldest;
    const monday = mondayOf(name);
    return monday !== undefined && monday + week <= oldest;
  });
};

/** From when on rows are kept once these partitions are gone (ms); undefined when none of them goes. */
export const keptFrom = (
  names: readonly string[],
  dropped: readonly string[],
): number | undefined =>
  dropped.length === 0 ? undefined : weeksIn(names.filter((name) => !dropped.includes(name)))[0];

/** How many weeks ahead there are. */
export const weeksLeft = (names: readonly string[], now: number): number =>
  Math.round(((weeksIn(names).at(-1) ?? 0) - weekOf(now)) / week);

// Upkeep of the logs: weeks are added before they begin, and dropped when all of them is past the retention.
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, day, hour, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { type Partitioned, partitionedTables } from '../kernel/partitions.ts';
import { describeError } from '../kernel/redact.ts';
import { keptFrom, weeksAheadLeast, weeksLeft, weeksToAdd, weeksToDrop } from './rules.ts';
import type { RetentionStore } from './store.ts';

export type RetentionDeps = {
  retention: RetentionStore;
  clock: Clock;
  log: Log;
  config: { retentionDays: number };
};

const everyMs = 10 * minute;

const addWeeks = async ({ retention, clock, log }: RetentionDeps, one: Partitioned) => {
  const names = await retention.names(one.table);
  const missing = weeksToAdd(names, clock.now());
  if (missing.length === 0) return;
  await retention.add(one, missing);
  log.info({ table: one.table, weeks: missing.length }, 'weeks added');
};

const dropWeeks = async ({ retention, clock, log, config }: RetentionDeps, one: Partitioned) => {
  const names = await retention.names(one.table);
  const past = weeksToDrop(names, clock.now(), config.retentionDays * day);
  const from = keptFrom(names, past);
  if (from === undefined) return;
  // Said first: nothing may be counted from messages, or added up from hours, that are about to go.
  if (one.table === 'messages' || one.table === 'rollup_hours')
    await retention.keepFrom(from / hour);
  await retention.drop(one, past);
  log.info(
    { table: one.table, weeks: past.length, kept_from: new Date(from).toISOString() },
    'weeks dropped',
  );
};

const keepTable = async (deps: RetentionDeps, one: Partitioned): Promise<void> => {
  const { retention, clock, log } = deps;
  try {
    await addWeeks(deps, one);
    await dropWeeks(deps, one);
  } catch (error) {
    // Busy for longer than the change may wait: the next round is early enough.
    log.warn({ table: one.table, reason: describeError(error) }, 'weeks not changed');
  }
  const left = weeksLeft(await retention.names(one.table), clock.now());
  if (left < weeksAheadLeast) log.error({ table: one.table, weeks: left }, 'weeks are missing');
};

/** One round over all tables; false when another process is at it. */
export const keepUp = (deps: RetentionDeps): Promise<boolean> =>
  deps.retention.alone(async () => {
    for (const one of partitionedTables) await keepTable(deps, one);
  });

/** The chore of the analytics worker. */
export const createUpkeep = (deps: RetentionDeps): Chore =>
  repeat(async () => void (await keepUp(deps)), everyMs, deps.log);

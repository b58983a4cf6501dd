// The nightly recount: rollups of the last days compared with their messages; a difference is drift, reported and mended.
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, day, hour, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import type { RecountStore, Suspect } from './recount-store.ts';
import type { RollupStore } from './rollup-store.ts';
import { slotOf } from './rules.ts';

export type RecountDeps = {
  rollupStore: Pick<RollupStore, 'mark'>;
  recounts: RecountStore;
  clock: Clock;
  log: Log;
  /** Hears how many rollups differed in a night. */
  onRecounted?: (drifted: number) => void;
};

const daysBack = 3;
/** UTC. */
const nightHour = 2;
const leaseMs = hour;
const everyMs = 10 * minute;

type Finding = { suspects: Suspect[]; compared: number };

/** Compares every hour and day that begins in [from, to) (ms); ends early when told to. */
export const lookAt = async (
  { recounts }: Pick<RecountDeps, 'recounts'>,
  { from, to }: { from: number; to: number },
  isOver: () => boolean = () => false,
): Promise<Finding> => {
  const suspects: Suspect[] = [];
  let compared = 0;
  const add = (found: Finding): void => {
    suspects.push(...found.suspects);
    compared += found.compared;
  };
  for (let at = from; at < to && !isOver(); at += hour) {
    add(await recounts.compareHour(Math.floor(at / hour)));
    if (at % day === 0) add(await recounts.compareDay(Math.floor(at / day)));
  }
  return { suspects, compared };
};

/** What still differs at a second look: news that was on its way at the first one has arrived since. */
const confirm = async (
  { recounts }: RecountDeps,
  suspects: readonly Suspect[],
): Promise<Suspect[]> => {
  const still: Suspect[] = [];
  for (const [at, some] of Map.groupBy(suspects, (one) => one.hour)) {
    const now = await lookAt({ recounts }, { from: at * hour, to: (at + 1) * hour });
    const differing = new Set(now.suspects.map(({ accountId }) => accountId));
    still.push(...some.filter(({ accountId }) => differing.has(accountId)));
  }
  return still;
};

/** Reports drift and has it counted again. */
const report = async (
  { rollupStore, recounts, clock, log, onRecounted }: RecountDeps,
  { drifted, compared }: { drifted: Suspect[]; compared: number },
): Promise<void> => {
  const at = clock.now();
  const counts = { compared, drifted: drifted.length };
  if (drifted.length === 0) {
    log.info(counts, 'rollups equal a recount');
  } else {
    const some = drifted.slice(0, 5).map(({ accountId, hour: of }) => ({
      ...{ account_id: accountId, hour: new Date(of * hour).toISOString() },
    }));
    log.error({ ...counts, some }, 'rollups differed from a recount and are counted again');
    await rollupStore.mark(drifted.map((one) => ({ ...one, slot: slotOf(at) })));
  }
  onRecounted?.(drifted.length);
  await recounts.finish({ day: Math.floor(at / day), at, ...counts });
};

/**
 * One step of the nightly recount: the first one in the night compares the last three whole days, the next one
 * (minutes later) looks again at what differed. Answers what it did.
 */
export const createRecounter = (deps: RecountDeps) => {
  let first: Finding | undefined;
  return async (isOver?: () => boolean): Promise<'compared' | 'reported' | 'nothing'> => {
    const now = deps.clock.now();
    if (first !== undefined) {
      const { suspects, compared } = first;
      first = undefined;
      await report(deps, { drifted: await confirm(deps, suspects), compared });
      return 'reported';
    }
    const today = Math.floor(now / day);
    if (now % day < nightHour * hour) return 'nothing';
    if (!(await deps.recounts.claim(today, now, now + leaseMs))) return 'nothing';
    first = await lookAt(deps, { from: (today - daysBack) * day, to: today * day }, isOver);
    return 'compared';
  };
};

/** The chore of the analytics worker. Once a night one process has its turn; a stop ends it early. */
export const createNightlyRecount = (deps: RecountDeps): Chore => {
  let stopping = false;
  const step = createRecounter(deps);
  const chore = repeat(async () => void (await step(() => stopping)), everyMs, deps.log);
  return {
    start: chore.start,
    stop: () => {
      stopping = true;
      return chore.stop();
    },
  };
};

// What the figures of queues mean: rates from counters, the age of the oldest job from what came and went.

/** Jobs settled since a process started, by process and job, and when it said so (ms). */
export type Counted = ReadonlyMap<
  string,
  { at: number; handled: Readonly<Record<string, number>> }
>;

/** What settled between two words of the same processes, by job. One that is new counts from its start. */
export const settledBetween = (before: Counted, now: Counted): Record<string, number> => {
  const settled: Record<string, number> = {};
  for (const [id, { handled }] of now) {
    const earlier = before.get(id)?.handled ?? {};
    for (const [job, count] of Object.entries(handled)) {
      settled[job] = (settled[job] ?? 0) + Math.max(count - (earlier[job] ?? 0), 0);
    }
  }
  return settled;
};

/** One job at one moment; the counters only ever grow. */
export type Sample = {
  /** Waiting to be taken, in the fresh queue and the one behind the ladder. */
  ready: number;
  unacked: number;
  /** On the ladder. */
  waiting: number;
  dead: number;
  /** Settled since the first sample there is. */
  done: number;
  /** A second, since the sample before. */
  in: number;
  out: number;
  /** Of the oldest job that waits to be taken, ms. */
  age: number;
};

export type Sampled = { at: number; jobs: Readonly<Record<string, Sample>> };

/** How many had come by then, counted from the first sample. */
const arrived = ({ done, ready, unacked }: Omit<Sample, 'age'>): number => done + ready + unacked;

/**
 * The age of the oldest job that nobody has taken yet, ms. A queue is taken in order, so the oldest came just after
 * the moment when as many had come as are taken by now; between two samples jobs are thought to come evenly. The
 * broker tells no age, and taking a job to look at it would count as a delivery.
 */
export const oldestAge = (
  history: readonly Sampled[],
  job: string,
  now: { at: number; sample: Omit<Sample, 'age'> },
): number => {
  const { sample } = now;
  if (sample.ready === 0) return 0;
  const taken = sample.done + sample.unacked;
  let later: { at: number; came: number } = { at: now.at, came: arrived(sample) };
  for (const past of history.toReversed()) {
    const seen = past.jobs[job];
    if (!seen) break;
    const came = arrived(seen);
    if (came <= taken) {
      const share = later.came > came ? (taken - came) / (later.came - came) : 0;
      return Math.round(now.at - (past.at + share * (later.at - past.at)));
    }
    later = { at: past.at, came };
  }
  return now.at - later.at;
};

const perSecond = (count: number, ms: number): number =>
  ms > 0 ? Math.max(0, Math.round((count * 10_000) / ms) / 10) : 0;

/** What a moment adds to the one before: `settled` jobs went since then. */
export const nextSample = (
  before: { at: number; sample: Sample } | undefined,
  now: { at: number; ready: number; unacked: number; waiting: number; dead: number },
  settled: number,
): Omit<Sample, 'age'> => {
  const { at, ready, unacked, waiting, dead } = now;
  const state = { ready, unacked, waiting, dead };
  if (!before) return { ...state, done: 0, in: 0, out: 0 };
  const ms = at - before.at;
  const grown = ready + unacked - before.sample.ready - before.sample.unacked;
  return {
    ...state,
    done: before.sample.done + settled,
    in: perSecond(settled + grown, ms),
    out: perSecond(settled, ms),
  };
};

/** The samples of a minute as one: levels at their highest, rates at their mean. */
export const foldMinute = (samples: readonly Sampled[]): Sampled | undefined => {
  const last = samples.at(-1);
  if (!last) return undefined;
  const fold = (job: string): Sample => {
    const all = samples.flatMap(({ jobs }) => jobs[job] ?? []);
    const highest = (name: keyof Sample) => Math.max(0, ...all.map((one) => one[name]));
    const mean = (name: keyof Sample) =>
      Math.round((all.reduce((sum, one) => sum + one[name], 0) / Math.max(all.length, 1)) * 10) /
      10;
    return {
      ...{ ready: highest('ready'), unacked: highest('unacked'), waiting: highest('waiting') },
      ...{ dead: highest('dead'), done: highest('done'), age: highest('age') },
      ...{ in: mean('in'), out: mean('out') },
    };
  };
  const names = Object.keys(last.jobs);
  return { at: last.at, jobs: Object.fromEntries(names.map((job) => [job, fold(job)])) };
};

/** Columns for a plot: one row of times, and a row for each figure of each job. */
export const columnsOf = (samples: readonly Sampled[]) => {
  const names = Object.keys(samples.at(-1)?.jobs ?? {});
  const figures = ['ready', 'unacked', 'waiting', 'dead', 'in', 'out', 'age'] as const;
  const column = (job: string, name: keyof Sample) =>
    samples.map(({ jobs }) => jobs[job]?.[name] ?? null);
  return {
    at: samples.map(({ at }) => at),
    jobs: Object.fromEntries(
      names.map((job) => [
        job,
        Object.fromEntries(figures.map((name) => [name, column(job, name)])),
      ]),
    ),
  };
};

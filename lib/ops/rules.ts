// What the figures of queues mean: rates from counters, the age of the oldest job from what came and went; and how the past is kept.

/** What processes said they had settled since they started, by process and job; `at` by their own clocks (ms). */
export type Counted = ReadonlyMap<
  string,
  { at: number; startedAt: number; handled: Readonly<Record<string, number>> }
>;

/** Jobs settled, by job. */
export type Settled = {
  count: Record<string, number>;
  /** A second; each process measured by its own words, which are not as old as one another. */
  perSecond: Record<string, number>;
};

/** What settled between two words of the same processes. One that is new, or began anew, counts from its start. */
export const settledBetween = (before: Counted, now: Counted): Settled => {
  const settled: Settled = { count: {}, perSecond: {} };
  for (const [id, { at, startedAt, handled }] of now) {
    const known = before.get(id);
    const earlier = known?.startedAt === startedAt ? known : { at: startedAt, handled: {} };
    const ms = at - earlier.at;
    for (const [job, total] of Object.entries(handled)) {
      const count = Math.max(total - ((earlier.handled as Record<string, number>)[job] ?? 0), 0);
      settled.count[job] = (settled.count[job] ?? 0) + count;
      settled.perSecond[job] = (settled.perSecond[job] ?? 0) + (ms > 0 ? (count * 1_000) / ms : 0);
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
  /** Of the oldest job that waits to be taken, ms; null while nobody knows. */
  age: number | null;
};

/** A sample before its age is known. */
export type Bare = Omit<Sample, 'age'>;

export type Sampled = { at: number; jobs: Readonly<Record<string, Sample>> };

/** How many had come by then, counted from the first sample. */
const arrived = ({ done, ready, unacked }: Bare): number => done + ready + unacked;

/** `atLeast`: what was kept does not reach back to when it came. Null: nothing was kept. */
export type Age = { ms: number; atLeast: boolean } | null;

/**
 * The age of the oldest job that nobody has taken yet. A queue is taken in order, so the oldest came just after
 * the moment when as many had come as are taken by now; between two samples jobs are thought to come evenly. The
 * broker tells no age, and taking a job to look at it would count as a delivery.
 */
export const oldestAge = (
  history: readonly Sampled[],
  job: string,
  now: { at: number; sample: Bare },
): Age => {
  const { sample } = now;
  if (sample.ready === 0) return { ms: 0, atLeast: false };
  const taken = sample.done + sample.unacked;
  let later: { at: number; came: number } | undefined;
  for (const past of history.toReversed()) {
    const seen = past.jobs[job];
    if (!seen) break;
    const came = arrived(seen);
    if (came <= taken) {
      const next = later ?? { at: now.at, came: arrived(sample) };
      const share = next.came > came ? (taken - came) / (next.came - came) : 0;
      const ms = Math.round(now.at - (past.at + share * (next.at - past.at)));
      return { ms: Math.max(0, ms), atLeast: false };
    }
    later = { at: past.at, came };
  }
  return later ? { ms: Math.max(0, now.at - later.at), atLeast: true } : null;
};

const rounded = (rate: number): number => Math.max(0, Math.round(rate * 10) / 10);

/** What a moment adds to the one before; `settled` since then, in all and a second. */
export const nextSample = (
  before: { at: number; sample: Sample } | undefined,
  now: { at: number; ready: number; unacked: number; waiting: number; dead: number },
  settled: { count: number; perSecond: number },
): Bare => {
  const { at, ready, unacked, waiting, dead } = now;
  const state = { ready, unacked, waiting, dead };
  if (!before) return { ...state, done: 0, in: 0, out: 0 };
  const seconds = Math.max(at - before.at, 1) / 1_000;
  const grown = (ready + unacked - before.sample.ready - before.sample.unacked) / seconds;
  return {
    ...state,
    done: before.sample.done + settled.count,
    in: rounded(settled.perSecond + grown),
    out: rounded(settled.perSecond),
  };
};

const minuteMs = 60_000;

/** The samples of the last minute as one: levels at their highest, rates at their mean. */
export const foldMinute = (samples: readonly Sampled[]): Sampled | undefined => {
  const last = samples.at(-1);
  if (!last) return undefined;
  const those = samples.filter(({ at }) => at > last.at - minuteMs);
  const fold = (job: string): Sample => {
    const all = those.flatMap(({ jobs }) => jobs[job] ?? []);
    const highest = (name: keyof Bare) => Math.max(0, ...all.map((one) => one[name]));
    const mean = (name: keyof Bare) =>
      rounded(all.reduce((sum, one) => sum + one[name], 0) / Math.max(all.length, 1));
    const ages = all.flatMap(({ age }) => age ?? []);
    return {
      ...{ ready: highest('ready'), unacked: highest('unacked'), waiting: highest('waiting') },
      ...{ dead: highest('dead'), done: highest('done') },
      ...{ in: mean('in'), out: mean('out'), age: ages.length > 0 ? Math.max(...ages) : null },
    };
  };
  const names = Object.keys(last.jobs);
  return { at: last.at, jobs: Object.fromEntries(names.map((job) => [job, fold(job)])) };
};

/** Longer than this many steps nobody looked: a hole, which no line may bridge. */
const holeSteps = 2.5;

/** A moment without figures in every hole. */
const withHoles = (samples: readonly Sampled[], stepMs: number): Sampled[] =>
  samples.flatMap((sample, n) => {
    const before = samples[n - 1];
    const hole = before !== undefined && sample.at - before.at > holeSteps * stepMs;
    return hole ? [{ at: before.at + stepMs, jobs: {} }, sample] : [sample];
  });

/** Columns for a plot: one row of times, and a row for each figure of each job; null where nobody looked. */
export const columnsOf = (kept: readonly Sampled[], stepMs: number) => {
  const samples = withHoles(kept, stepMs);
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

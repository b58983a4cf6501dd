// The figures of the queues: what the broker counts, what the processes have in hand, and how it went until now.
import type { ManagedQueue, Management } from '../infra/management.ts';
import type { Broker } from '../infra/queue/broker.ts';
import { BrokerUnavailable } from '../infra/queue/errors.ts';
import { type Depths, readDepths } from '../infra/queue/gauge.ts';
import type { Letters } from '../infra/queue/letters.ts';
import { againQueue } from '../infra/queue/topology.ts';
import { jobs } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import { inTime } from '../kernel/in-time.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { SeenPulse } from '../pulse/rules.ts';
import type { PulseStore } from '../pulse/store.ts';
import { type Past, type RingStore, rings } from './ring-store.ts';
import {
  type Age,
  type Bare,
  type Counted,
  foldMinute,
  nextSample,
  oldestAge,
  type Sampled,
  settledBetween,
} from './rules.ts';

export type FigureDeps = {
  broker: Pick<Broker, 'look'>;
  management: Management | undefined;
  pulses: Pick<PulseStore, 'readPulses'>;
  letters: Pick<Letters, 'counts'>;
  ring: RingStore;
  clock: Clock;
  log: Log;
};

export type QueueFigures = Depths & {
  unacked: number | null;
  oldestAgeMs: number | null;
  /** The oldest may be older: what was kept does not reach back to when it came. */
  oldestAgeIsLeast: boolean;
  inPerSecond: number | null;
  outPerSecond: number | null;
};

/** `source` says who counted what is in hand and the rates. */
export type Figures = { at: number; source: 'management' | 'processes'; queues: QueueFigures[] };

export type FigureBoard = {
  /** As it is now. @throws BrokerUnavailable */
  now(): Promise<Figures>;
  /** Keeps a sample; once every five seconds. */
  sample(): Promise<void>;
};

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

const handOf = (job: string, queues: readonly ManagedQueue[]) => {
  const own = queues.filter(({ name }) => name === job || name === againQueue(job));
  return {
    unacked: sum(own.map(({ unacked }) => unacked)),
    inPerSecond: sum(own.map((queue) => queue.inPerSecond)),
    outPerSecond: sum(own.map((queue) => queue.outPerSecond)),
  };
};

const inHand = (job: string, pulses: readonly SeenPulse[]): number =>
  sum(pulses.filter(({ state }) => state === 'alive').map(({ doing }) => doing.jobs[job] ?? 0));

const waitingIn = ({ waiting }: Depths): number => sum(waiting.map(({ ready }) => ready));

/** An engine that keeps silent is away: those who look, and Prometheus, hear so in time. */
const patienceMs = 3_000;

const silence = () => new BrokerUnavailable('no answer in time');

type Taken = {
  at: number;
  depths: Depths[];
  seen: SeenPulse[] | undefined;
  managed: ManagedQueue[] | undefined;
  past: Past | undefined;
};

const readCounts = async ({ broker, letters }: FigureDeps): Promise<Depths[]> => {
  const names = jobs.map(({ name }) => name);
  const [depths, dead] = await Promise.all([readDepths(broker, jobs), letters.counts(names)]);
  return depths.map((one) => ({ ...one, dead: dead.get(one.job) ?? one.dead }));
};

/** Everything at once. What is missing beside the depths makes a figure unknown; it does not take the others with it. */
const take = async (deps: FigureDeps): Promise<Taken> => {
  const { management, pulses, ring, clock, log } = deps;
  const quiet = async <T>(what: string, ask: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await inTime(ask(), patienceMs, silence);
    } catch (error) {
      log.debug({ reason: describeError(error) }, `${what} not read`);
      return undefined;
    }
  };
  const [depths, seen, managed, past] = await Promise.all([
    inTime(readCounts(deps), patienceMs, silence),
    quiet('pulses', pulses.readPulses),
    management && quiet('management', management.queues),
    quiet('history', () => ring.read('hour')),
  ]);
  return { at: past?.now ?? clock.now(), depths, seen, managed, past };
};

const countedOf = (pulses: readonly SeenPulse[]): Counted =>
  new Map(
    pulses.map(({ id, at, startedAt, doing: { handled } }) => [id, { at, startedAt, handled }]),
  );

type Judged = { bare: Bare; age: Age };

/** What this moment adds to the past, job by job. */
const judge = ({ at, depths, seen = [], past }: Taken): Map<string, Judged> => {
  const history = past?.samples ?? [];
  const before = history.at(-1);
  const { count, perSecond } = settledBetween(
    // Nobody saw how it began: nothing is known to have settled since.
    past?.counted ?? countedOf(seen),
    countedOf(seen),
  );
  return new Map(
    depths.map((one) => {
      const { job } = one;
      const earlier = before?.jobs[job];
      const bare = nextSample(
        before && earlier && { at: before.at, sample: earlier },
        {
          ...{ at, ready: one.fresh + one.again, waiting: waitingIn(one) },
          ...{ dead: one.dead, unacked: inHand(job, seen) },
        },
        { count: count[job] ?? 0, perSecond: perSecond[job] ?? 0 },
      );
      return [job, { bare, age: oldestAge(history, job, { at, sample: bare }) }];
    }),
  );
};

/** Older than this the last sample says nothing of now. */
const freshMs = 3 * rings.hour.stepMs;

const toFigures = (taken: Taken): QueueFigures[] => {
  const judged = judge(taken);
  const last = taken.past?.samples.at(-1);
  const rates = last && taken.at - last.at <= freshMs ? last.jobs : {};
  return taken.depths.map((depths) => {
    const now = taken.seen && judged.get(depths.job);
    const rate = rates[depths.job];
    const own = taken.managed && handOf(depths.job, taken.managed);
    const empty = depths.fresh + depths.again === 0;
    return {
      ...depths,
      oldestAgeMs: empty ? 0 : (now?.age?.ms ?? null),
      oldestAgeIsLeast: !empty && now?.age?.atLeast === true,
      unacked: own?.unacked ?? now?.bare.unacked ?? null,
      inPerSecond: own?.inPerSecond ?? rate?.in ?? null,
      outPerSecond: own?.outPerSecond ?? rate?.out ?? null,
    };
  });
};

const toSampled = (taken: Taken): Sampled => ({
  at: taken.at,
  jobs: Object.fromEntries(
    [...judge(taken)].map(([job, { bare, age }]) => [job, { ...bare, age: age?.ms ?? null }]),
  ),
});

const minuteSamples = 13;

export const createFigureBoard = (deps: FigureDeps): FigureBoard => {
  const { ring } = deps;
  let asking: Promise<Figures> | undefined;

  const look = async (): Promise<Figures> => {
    const taken = await take(deps);
    const source = taken.managed ? 'management' : 'processes';
    return { at: taken.at, source, queues: toFigures(taken) };
  };

  return {
    now: () => {
      // Many who look at once share one look.
      asking ??= look().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    sample: async () => {
      const taken = await take(deps);
      // What is half known is a hole, and no figure.
      if (!taken.seen) return;
      const after = { at: taken.past?.samples.at(-1)?.at, counted: countedOf(taken.seen) };
      if (!(await ring.append('hour', toSampled(taken), after))) return;
      const minute = foldMinute((await ring.read('hour', minuteSamples)).samples);
      if (minute) await ring.append('day', minute);
    },
  };
};

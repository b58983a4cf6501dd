// The figures of the queues: what the broker counts, what the processes have in hand, and how it went until now.
import type { ManagedQueue, Management } from '../infra/management.ts';
import type { Broker } from '../infra/queue/broker.ts';
import { type Depths, readDepths } from '../infra/queue/gauge.ts';
import type { Letters } from '../infra/queue/letters.ts';
import { againQueue } from '../infra/queue/topology.ts';
import { jobs } from '../jobs.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { SeenPulse } from '../pulse/rules.ts';
import type { PulseStore } from '../pulse/store.ts';
import type { RingStore } from './ring-store.ts';
import { foldMinute, nextSample, oldestAge, type Sample, type Sampled } from './rules.ts';
import { createSettledMeter } from './settled.ts';

export type FigureDeps = {
  broker: Pick<Broker, 'look'>;
  management: Management | undefined;
  pulses: Pick<PulseStore, 'readPulses'>;
  letters: Pick<Letters, 'held'>;
  ring: RingStore;
  clock: Clock;
  log: Log;
};

export type QueueFigures = Depths & {
  unacked: number | null;
  oldestAgeMs: number | null;
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

type Taken = {
  at: number;
  depths: Depths[];
  seen: SeenPulse[] | undefined;
  managed: ManagedQueue[] | undefined;
  history: Sampled[];
};
type SettledByJob = Readonly<Record<string, number>>;

/** Everything at once. What is missing beside the depths makes a figure unknown; it does not take the others with it. */
const take = async (deps: FigureDeps): Promise<Taken> => {
  const { broker, management, pulses, ring, clock, log } = deps;
  const quiet = async <T>(what: string, ask: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await ask();
    } catch (error) {
      log.debug({ reason: describeError(error) }, `${what} not read`);
      return undefined;
    }
  };
  const [depths, seen, managed, history] = await Promise.all([
    readDepths(broker, jobs),
    quiet('pulses', pulses.readPulses),
    management && quiet('management', management.queues),
    quiet('history', () => ring.read('hour', clock.now())),
  ]);
  return { at: clock.now(), depths, seen, managed, history: history ?? [] };
};

/** The sample of a moment; `held` are dead letters in the hands of an order. */
const toSampled = (
  { at, depths, seen = [], history }: Taken,
  settled: SettledByJob,
  held: (job: string) => number,
): Sampled => {
  const before = history.at(-1);
  const entries = depths.map((one): [string, Sample] => {
    const earlier = before?.jobs[one.job];
    const bare = nextSample(
      before && earlier && { at: before.at, sample: earlier },
      {
        ...{ at, ready: one.fresh + one.again, waiting: waitingIn(one) },
        ...{ dead: one.dead + held(one.job), unacked: inHand(one.job, seen) },
      },
      settled[one.job] ?? 0,
    );
    return [one.job, { ...bare, age: oldestAge(history, one.job, { at, sample: bare }) }];
  });
  return { at, jobs: Object.fromEntries(entries) };
};

const toFigures = (taken: Taken, sampled: Sampled): QueueFigures[] => {
  const rates = taken.history.at(-1)?.jobs ?? {};
  return taken.depths.map((depths) => {
    const sample = taken.seen && sampled.jobs[depths.job];
    const rate = rates[depths.job];
    const own = taken.managed && handOf(depths.job, taken.managed);
    return {
      ...depths,
      dead: sampled.jobs[depths.job]?.dead ?? depths.dead,
      oldestAgeMs: sample?.age ?? null,
      unacked: own?.unacked ?? sample?.unacked ?? null,
      inPerSecond: own?.inPerSecond ?? rate?.in ?? null,
      outPerSecond: own?.outPerSecond ?? rate?.out ?? null,
    };
  });
};

const minuteSamples = 12;

export const createFigureBoard = (deps: FigureDeps): FigureBoard => {
  const { letters, ring } = deps;
  const meter = createSettledMeter();
  let asking: Promise<Figures> | undefined;

  const look = async (): Promise<Figures> => {
    const taken = await take(deps);
    const sampled = toSampled(taken, meter.peek(taken.seen ?? []), letters.held);
    const source = taken.managed ? 'management' : 'processes';
    return { at: taken.at, source, queues: toFigures(taken, sampled) };
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
      const sampled = toSampled(taken, meter.take(taken.seen ?? []), letters.held);
      if (!(await ring.append('hour', sampled))) return;
      const minute = foldMinute(await ring.read('hour', sampled.at, minuteSamples));
      if (minute) await ring.append('day', minute);
    },
  };
};

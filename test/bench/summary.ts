// From rounds to figures: throughput, percentiles and CPU per request for each operation, and the memory of each process.
import type { Operation } from './load-orders.ts';
import type { MemorySample, Round } from './rounds.ts';

export type OperationFigures = {
  operation: Operation;
  requests: number;
  seconds: number;
  /** Requests a second over all rounds, and in each of them. */
  throughput: number;
  rounds: number[];
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** CPU ms per request by process. */
  cpuMs: Record<string, number>;
  /** Cores that processes outside the benchmark kept busy in the timed windows, on average. */
  otherCores: number;
  statuses: Record<string, number>;
  samples: string[];
  /** Longest time the work behind the answers went on after a round. */
  drainedMs: number;
  /** Answers that promise a message against messages the provider took; equal unless something is wrong. */
  answered: number;
  accepted: number;
};

export type MemoryFigures = {
  startMb: number;
  maxMb: number;
  /** Mean of the last cycle against the mean of the one before: 1.05 is 5 % more. Undefined with too few cycles. */
  growth: number | undefined;
  slopeMbPerMinute: number | undefined;
};

const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0);
const mean = (values: readonly number[]): number => sum(values) / values.length;

const sumRecords = (records: readonly Record<string, number>[]): Record<string, number> => {
  const total: Record<string, number> = {};
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) total[name] = (total[name] ?? 0) + value;
  }
  return total;
};

/** The value below which `share` of the sorted values lie (nearest rank), 0 for none. */
export const percentile = (sorted: Uint32Array, share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;

const joinLatencies = (rounds: readonly Round[]): Uint32Array => {
  const all = new Uint32Array(sum(rounds.map(({ report }) => report.latenciesUs.length)));
  let at = 0;
  for (const { report } of rounds) {
    all.set(report.latenciesUs, at);
    at += report.latenciesUs.length;
  }
  return all.sort();
};

/** The figures of one operation over all its rounds. */
export const figuresOf = (operation: Operation, all: readonly Round[]): OperationFigures => {
  const rounds = all.filter((round) => round.operation === operation);
  const reports = rounds.map(({ report }) => report);
  const sorted = joinLatencies(rounds);
  const requests = sum(reports.map((report) => report.requests));
  const seconds = sum(reports.map((report) => report.seconds));
  const statuses = sumRecords(reports.map((report) => report.statuses));
  const cpu = sumRecords(rounds.map(({ cpuMs }) => cpuMs));
  const sends = operation !== 'verify' && operation !== 'totp';
  return {
    ...{ operation, requests, seconds, statuses },
    throughput: requests / seconds,
    rounds: reports.map((report) => report.requests / report.seconds),
    p50Ms: percentile(sorted, 0.5) / 1000,
    p99Ms: percentile(sorted, 0.99) / 1000,
    maxMs: (sorted.at(-1) ?? 0) / 1000,
    cpuMs: Object.fromEntries(Object.entries(cpu).map(([name, ms]) => [name, ms / requests])),
    otherCores: sum(rounds.map(({ othersMs }) => othersMs)) / 1000 / seconds,
    samples: reports.flatMap((report) => report.samples).slice(0, 5),
    drainedMs: Math.max(...rounds.map((round) => round.drainedMs)),
    answered: sends ? (statuses[200] ?? 0) : 0,
    accepted: sends ? sum(rounds.map((round) => round.accepted)) : 0,
  };
};

/** MB per minute of the straight line that fits the points best (least squares). */
const slopeOf = (points: readonly { atMs: number; mb: number }[]): number | undefined => {
  if (points.length < 3) return undefined;
  const [atMs, mb] = [mean(points.map((one) => one.atMs)), mean(points.map((one) => one.mb))];
  const over = sum(points.map((one) => (one.atMs - atMs) * (one.mb - mb)));
  const spread = sum(points.map((one) => (one.atMs - atMs) ** 2));
  return (over / spread) * 60_000;
};

const pointsOf = (name: string, samples: readonly MemorySample[]) =>
  samples.flatMap(({ cycle, atMs, mb }) => {
    const value = mb[name];
    return value === undefined ? [] : [{ cycle, atMs, mb: value }];
  });

/** A process's memory. The first cycle fills heaps and caches, so growth is looked for after it. */
export const memoryFigures = (name: string, rounds: readonly Round[]): MemoryFigures => {
  const points = pointsOf(
    name,
    rounds.flatMap(({ memory }) => memory),
  );
  const cycles = Math.max(...points.map(({ cycle }) => cycle));
  const meanOf = (cycle: number) =>
    mean(points.filter((one) => one.cycle === cycle).map(({ mb }) => mb));
  const later = points.filter(({ cycle }) => cycle > 1);
  return {
    startMb: points[0]?.mb ?? 0,
    maxMb: Math.max(...points.map(({ mb }) => mb)),
    growth: cycles < 3 ? undefined : meanOf(cycles) / meanOf(cycles - 1),
    slopeMbPerMinute: cycles < 3 ? undefined : slopeOf(later),
  };
};

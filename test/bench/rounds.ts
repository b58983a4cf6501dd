// One round: its phones are prepared, the load is put on, and what every process used in the timed window is noted.
import type { Background } from './background.ts';
import type { LoadGenerator } from './load-client.ts';
import type { LoadReport, Operation } from './load-orders.ts';
import type { Options } from './options.ts';
import type { Simulator } from './simulator.ts';
import { busyCpu, cpuOf, memoryOf } from './usage.ts';

export type MemorySample = { cycle: number; atMs: number; mb: Record<string, number> };

export type Round = {
  operation: Operation;
  cycle: number;
  report: LoadReport;
  /** CPU time used in the timed window, ms by process. */
  cpuMs: Record<string, number>;
  /** CPU time that processes outside the benchmark took from it meanwhile, ms. */
  othersMs: number;
  memory: MemorySample[];
  /** How long the work behind the answers went on after the load. */
  drainedMs: number;
  /** Messages the simulated WhatsApp accepted; as many as were answered 200, where the operation sends. */
  accepted: number;
};

export type Bench = {
  options: Options;
  load: LoadGenerator;
  simulator: Simulator;
  background: Background;
  keys: readonly string[];
  ports: { api: number; bare: number };
  /** Whose CPU time and memory is noted. */
  pids: Record<string, number>;
  watchedMemory: readonly string[];
  /** Marks these phones as known to be reached by WhatsApp. */
  learn(first: number, count: number): Promise<void>;
  /** Enrolls these phones for TOTP. */
  enroll(first: number, count: number): Promise<void>;
  /** @throws Error when a process of the stack died */
  checkProcesses(): void;
};

export type Wanted = { operation: Operation; first: number; count: number };

type Cpu = { byName: Record<string, number>; busyMs: number };

const readCpu = (pids: Record<string, number>): Cpu => ({
  byName: Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuOf(pid) ?? 0])),
  busyMs: busyCpu() ?? 0,
});

const usedBetween = (before: Cpu, after: Cpu): Pick<Round, 'cpuMs' | 'othersMs'> => {
  const cpuMs = Object.fromEntries(
    Object.entries(after.byName).map(([name, ms]) => [name, ms - (before.byName[name] ?? 0)]),
  );
  const known = Object.values(cpuMs).reduce((sum, ms) => sum + ms, 0);
  return { cpuMs, othersMs: Math.max(0, after.busyMs - before.busyMs - known) };
};

const readMemory = ({ pids, watchedMemory }: Bench): Record<string, number> =>
  Object.fromEntries(
    watchedMemory.flatMap((name) => {
      const mb = memoryOf(pids[name] ?? 0);
      return mb === undefined ? [] : [[name, mb]];
    }),
  );

/** Notes what is used while the window is open; memory at its start, its middle and its end. */
const createMeter = (bench: Bench, cycle: number) => {
  const memory: MemorySample[] = [];
  let before: Cpu = { byName: {}, busyMs: 0 };
  let used: Pick<Round, 'cpuMs' | 'othersMs'> = { cpuMs: {}, othersMs: 0 };
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    memory.push({ cycle, atMs: performance.now(), mb: readMemory(bench) });
  };
  return {
    memory,
    used: () => used,
    opened: () => {
      before = readCpu(bench.pids);
      look();
      timer = setTimeout(look, (bench.options.seconds * 1000) / 2);
    },
    closed: () => {
      used = usedBetween(before, readCpu(bench.pids));
      clearTimeout(timer);
      look();
    },
  };
};

const orderOf = ({ options, keys, ports }: Bench, { operation, first, count }: Wanted) => ({
  ...{ operation, first, count, connections: options.connections },
  port: operation === 'bare' ? ports.bare : ports.api,
  keys: operation === 'bare' ? [] : keys,
  warmupMs: options.warmupSeconds * 1000,
  measureMs: options.seconds * 1000,
});

/** Runs a round and waits until the product has done everything that follows from it. */
export const runRound = async (bench: Bench, cycle: number, wanted: Wanted): Promise<Round> => {
  const { load, simulator, background, options } = bench;
  const { operation } = wanted;
  await simulator.reportReceipts(options.receipts && operation !== 'bare');
  const meter = createMeter(bench, cycle);
  const before = await simulator.counts();
  const report = await load.run(orderOf(bench, wanted), meter);
  const drainedMs = await background.done();
  const accepted = (await simulator.counts()).accepted - before.accepted;
  bench.checkProcesses();
  const { memory } = meter;
  return { operation, cycle, report, ...meter.used(), memory, drainedMs, accepted };
};

/** Delivers a code to each of these phones, untimed, so that it can be verified. */
export const deliverCodes = async (bench: Bench, first: number, count: number): Promise<void> => {
  const order = { ...orderOf(bench, { operation: 'deliver', first, count }), measureMs: 0 };
  const nobody = { opened: () => undefined, closed: () => undefined };
  const { statuses, samples } = await bench.load.run(order, nobody);
  await bench.background.done();
  if ((statuses[200] ?? 0) === count) return;
  throw new Error(`Codes to verify could not be delivered: ${samples.join('; ')}`);
};

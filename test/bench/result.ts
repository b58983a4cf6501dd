// The result of a run as programs read it.
import { cpus, totalmem } from 'node:os';
import type { Operation } from './load-orders.ts';
import type { Options } from './options.ts';
import type { Round } from './rounds.ts';
import { figuresOf, type MemoryFigures, memoryFigures, type OperationFigures } from './summary.ts';
import { memoryVerdicts, notesOn, ratioVerdicts, soundness, type Verdict } from './targets.ts';

export type Machine = { cpus: number; model: string; memoryGb: number; node: string };
export type EngineVersions = { rabbitmq: string; mysql: string; redis: string };

export type Result = {
  startedAt: string;
  options: Options;
  machine: Machine;
  engines: EngineVersions;
  operations: OperationFigures[];
  memory: Record<string, MemoryFigures>;
  verdicts: Verdict[];
  /** What to know when reading it: other processes took part of the machine. */
  notes: string[];
  /** Why the run says little: answers other than 200, messages that do not add up. */
  mistakes: string[];
  /** Every target was met in a sound run. */
  passed: boolean;
};

const describeMachine = (): Machine => {
  const found = cpus();
  return {
    cpus: found.length,
    model: found[0]?.model ?? 'unknown',
    memoryGb: Math.round(totalmem() / 1e9),
    node: process.versions.node,
  };
};

/** Puts the rounds together. `watched` are the processes whose memory counts. */
export const resultOf = (
  rounds: readonly Round[],
  about: {
    startedAt: Date;
    options: Options;
    engines: EngineVersions;
    watched: readonly string[];
    /** Of the measurements beside the rounds. */
    extras: readonly Verdict[];
  },
): Result => {
  const names = [...new Set(rounds.map(({ operation }) => operation))];
  const operations = names.map((name) => figuresOf(name, rounds));
  const byName: Partial<Record<Operation, OperationFigures>> = Object.fromEntries(
    operations.map((one) => [one.operation, one]),
  );
  const memory = Object.fromEntries(
    rounds.length === 0
      ? []
      : about.watched.map((name) => [name, memoryFigures(name, rounds)] as const),
  );
  const verdicts = [...ratioVerdicts(byName), ...about.extras, ...memoryVerdicts(memory)];
  const mistakes = soundness(operations);
  const machine = describeMachine();
  return {
    startedAt: about.startedAt.toISOString(),
    options: about.options,
    machine,
    engines: about.engines,
    ...{ operations, memory, verdicts, mistakes, notes: notesOn(operations, machine.cpus) },
    passed: mistakes.length === 0 && verdicts.every(({ met }) => met),
  };
};

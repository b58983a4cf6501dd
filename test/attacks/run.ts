// Runs attacks in turn, and tells their figures: the table and the exit code.
import type { Attack, Figure, RunningStack } from './attack.ts';

/** The figures of one attack, under its name. */
export type Outcome = { attack: string; figures: readonly Figure[] };

/** What the runner needs of the machine. */
export type Surroundings = {
  /** The stack as it is now: a process that was started again has another id. */
  readStack(): RunningStack;
  /** Resolves when the API answers; throws when it does not come back. */
  untilAnswering(stack: RunningStack): Promise<void>;
  /** Whether a process with this id runs. */
  isRunning(pid: number): boolean;
  /** One line of progress. */
  say(line: string): void;
};

const describe = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error);

const survival = (before: RunningStack, isRunning: Surroundings['isRunning']): Figure => {
  const died = Object.entries(before.pids)
    .filter(([, pid]) => pid !== null && !isRunning(pid))
    .map(([name]) => name);
  return {
    what: 'processes that died',
    value: died.join(', ') || 'none',
    bound: 'none',
    holds: died.length === 0,
  };
};

const figuresOf = async (attack: Attack, surroundings: Surroundings): Promise<Figure[]> => {
  const { readStack, untilAnswering, isRunning } = surroundings;
  try {
    const before = readStack();
    await untilAnswering(before);
    const figures = await attack.run(before);
    return [...figures, survival(before, isRunning)];
  } catch (error) {
    return [{ what: 'ran to its end', value: describe(error), bound: 'yes', holds: false }];
  }
};

/** Runs the attacks one after the other. An attack that throws is a figure that does not hold. */
export const runAttacks = async (
  attacks: readonly Attack[],
  surroundings: Surroundings,
): Promise<Outcome[]> => {
  const outcomes: Outcome[] = [];
  for (const attack of attacks) {
    surroundings.say(`${attack.name}: ${attack.about}`);
    const startedAt = performance.now();
    const figures = await figuresOf(attack, surroundings);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const held = figures.filter(({ holds }) => holds).length;
    surroundings.say(`  ${held} of ${figures.length} figures hold, after ${seconds} s`);
    outcomes.push({ attack: attack.name, figures });
  }
  return outcomes;
};

/** The attacks that `only` names, separated by commas; all without it. @throws Error for a name that is not listed */
export const chooseAttacks = (
  attacks: readonly Attack[],
  only: string | undefined,
): readonly Attack[] => {
  if (only === undefined) return attacks;
  const names = only.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !attacks.some((attack) => attack.name === name));
  if (unknown !== undefined) {
    const known = attacks.map(({ name }) => name).join(', ');
    throw new Error(`--only takes ${known || 'no name yet'}, not "${unknown}".`);
  }
  return attacks.filter(({ name }) => names.includes(name));
};

const titles = ['attack', 'figure', 'value', 'bound', 'holds'];

/** One row a figure, in columns. */
export const tableOf = (outcomes: readonly Outcome[]): string => {
  const rows = outcomes.flatMap(({ attack, figures }) =>
    figures.map(({ what, value, bound, holds }) => [
      attack,
      what,
      value,
      bound,
      holds ? 'yes' : 'NO',
    ]),
  );
  const lines = [titles, ...rows];
  const widths = titles.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
};

/** 0 when every figure holds and at least one was measured, otherwise 1. */
export const exitCodeOf = (outcomes: readonly Outcome[]): number => {
  const figures = outcomes.flatMap((outcome) => outcome.figures);
  return figures.length > 0 && figures.every(({ holds }) => holds) ? 0 : 1;
};

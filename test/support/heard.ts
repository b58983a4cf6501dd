// Waiting until the processes of a stack have heard of a change, for which the product allows itself a second.
import type { ExecutionContext } from 'ava';
import { eventually, type Stack } from './stack.ts';

type Process = Pick<Stack['worker'], 'revocations' | 'pauses' | 'platform'>;

/**
 * Does something that is announced to all processes; resolves when the API and the workers have heard of it, and
 * `holds` is true of both.
 */
export const andHeard = async <T>(
  t: ExecutionContext,
  stack: Stack,
  work: () => Promise<T>,
  holds: (process: Process) => boolean = () => true,
): Promise<T> => {
  const processes: Process[] = [stack.api, stack.worker];
  const before = processes.map(({ revocations }) => revocations.news());
  const done = await work();
  const isHeard = (process: Process, index: number): boolean => {
    const { revocations } = process;
    const isNew = revocations.epoch() !== undefined && revocations.news() !== before[index];
    return isNew && holds(process);
  };
  await eventually(t, () => processes.every(isHeard) || undefined);
  return done;
};

// Fills Node's compile cache before the processes of the stack start, with the settings they start with.
import { runCommand } from './processes.ts';
import type { ProcfileLine } from './procfile.ts';

/** Node's own settings on a line of the Procfile: what stands before the script. */
export const nodeSettings = ({ args }: ProcfileLine): string[] =>
  args.slice(
    0,
    args.findIndex((arg) => !arg.startsWith('--')),
  );

/** Runs docker/precompile.ts; a failure costs only the time and memory the cache would have saved. */
export const precompile = async (given: {
  root: string;
  env: NodeJS.ProcessEnv;
  signal: AbortSignal;
  processes: readonly ProcfileLine[];
}): Promise<void> => {
  const { root: cwd, env, signal, processes } = given;
  // The cache counts for one set of V8's flags.
  const sets = new Set(processes.map((line) => nodeSettings(line).join(' ')));
  for (const set of sets) {
    const args = [...set.split(' ').filter(Boolean), 'docker/precompile.ts'];
    await runCommand(process.execPath, args, { cwd, env, signal, group: true });
  }
};

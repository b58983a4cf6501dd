// Operating system processes by pid and start time, so that a reused pid is never mistaken for ours.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A process: its pid and, where the system tells it, when it was started (kernel ticks). */
export type ProcessRef = { pid: number; started: string };

type Stat = { state: string; started: string };

// Field 3 and 22 of /proc/<pid>/stat, counted after the name, which may hold blanks (proc(5)).
const readStat = (pid: number): Stat | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', started: fields[19] ?? '' };
  } catch {
    return undefined;
  }
};

/** Names the running process `pid` so that it can be recognised later. */
export const identify = (pid: number): ProcessRef => ({
  pid,
  started: readStat(pid)?.started ?? '',
});

/** Whether this very process still runs; a zombie has ended. */
export const isRunning = ({ pid, started }: ProcessRef): boolean => {
  const stat = readStat(pid);
  return stat !== undefined && stat.state !== 'Z' && stat.started === started;
};

/** Sends `signal` to the process and its group, when it leads one; missing ones are no error. */
export const signalProcess = (ref: ProcessRef, signal: NodeJS.Signals): void => {
  if (!isRunning(ref)) return;
  for (const target of signal === 'SIGKILL' ? [-ref.pid, ref.pid] : [ref.pid]) {
    try {
      process.kill(target, signal);
    } catch {
      // It ended in between, or it leads no group.
    }
  }
};

/** Ends a process: `signal`, then SIGKILL after `withinMs`. Resolves when it is gone. */
export const endProcess = async (
  ref: ProcessRef,
  options: { signal: NodeJS.Signals; withinMs: number },
): Promise<void> => {
  signalProcess(ref, options.signal);
  const deadline = Date.now() + options.withinMs;
  while (isRunning(ref)) {
    if (Date.now() > deadline) signalProcess(ref, 'SIGKILL');
    await sleep(20);
  }
};

/** Result of a command that ran to its end: exit code (128 + n for signals) and its output. */
export type CommandResult = { code: number; output: string };

/** How to run a command; `group` lets an abort reach what the command itself started. */
export type CommandOptions = {
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  signal?: AbortSignal;
  group?: boolean;
};

/**
 * Runs a command to its end and collects both outputs.
 * An abort sends it SIGTERM; the result is still that of its end. Throws when it cannot be run.
 */
export const runCommand = (
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> =>
  new Promise((resolve, reject) => {
    const { signal, group = false, ...rest } = options;
    const child = spawn(file, args, {
      ...rest,
      detached: group,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const abort = () => {
      if (child.pid !== undefined) process.kill(group ? -child.pid : child.pid, 'SIGTERM');
    };
    signal?.addEventListener('abort', abort, { once: true });
    let output = '';
    const collect = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', reject);
    child.on('exit', () => signal?.removeEventListener('abort', abort));
    child.on('close', (code) => resolve({ code: code ?? 128, output }));
  });

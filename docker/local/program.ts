// One program of the stack: what it is, how it is launched, how to tell that it is ready, how it ends.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LogFile, openLog, tailOf } from './logs.ts';
import { endProcess, identify, type ProcessRef, signalProcess } from './processes.ts';
import type { State } from './state.ts';

/** What to run, how to see that it works, and how to end it. */
export type Program = {
  name: string;
  file: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd?: string;
  /** Programs that must be up before this one is started again. */
  needs?: readonly string[];
  stopSignal: NodeJS.Signals;
  stopWithinMs: number;
  readyWithinMs: number;
  /** One look: resolves when the program really answers, throws while it does not. */
  ready(log: LogFile): Promise<unknown>;
};

/** A launched program. */
export type Launched = {
  program: Program;
  child: ChildProcess;
  ref: ProcessRef | undefined;
  log: LogFile;
};

/** Thrown when a program does not become ready; the message quotes the end of its log. */
export class StartError extends Error {
  /** The first line of the message. */
  get headline(): string {
    return this.message.split('\n', 1)[0] ?? '';
  }
}

/** Thrown out of a waiting start when nothing is to be started any more. */
export class ClosedError extends Error {}

const pollMs = 50;
const quotedLines = 20;

/** Launches a program with its output in `<state>/logs/<name>.log` and notes its pid. */
export const launch = (program: Program, state: State): Launched => {
  const log = openLog(state.at('logs', `${program.name}.log`));
  const child = spawn(program.file, program.args, {
    env: program.env,
    ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
    // A session of its own: the terminal's Ctrl-C reaches us alone, and we end things in order.
    detached: true,
    stdio: ['ignore', log.descriptor, log.descriptor],
  });
  closeSync(log.descriptor);
  child.on('error', () => undefined);
  const ref = child.pid === undefined ? undefined : identify(child.pid);
  if (ref) state.record(program.name, ref.pid, program.stopSignal);
  return { program, child, ref, log };
};

/** Whether the program has ended. */
export const hasEnded = ({ child }: Launched): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

const describeEnd = ({ child }: Launched): string => {
  if (child.pid === undefined) return 'could not be run';
  const how = child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;
  return `ended (${how})`;
};

const startError = ({ program, log }: Launched, what: string): StartError => {
  const quoted = tailOf(log, quotedLines).map((line) => `    ${line}`);
  const head = `${program.name} ${what}; its log is ${log.path}`;
  return new StartError([head, ...quoted].join('\n'));
};

const look = async ({ program, log }: Launched): Promise<string | undefined> => {
  try {
    await program.ready(log);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
};

/**
 * Waits until the program answers.
 * @throws StartError when it ends or takes too long, ClosedError as soon as `closed` says so.
 */
export const untilReady = async (launched: Launched, closed: () => boolean): Promise<void> => {
  const { readyWithinMs } = launched.program;
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    const missing = await look(launched);
    if (closed()) throw new ClosedError();
    if (hasEnded(launched)) throw startError(launched, describeEnd(launched));
    if (missing === undefined) return;
    if (Date.now() > deadline) {
      throw startError(launched, `was not ready after ${readyWithinMs / 1000} s (${missing})`);
    }
    await sleep(pollMs);
  }
};

/** Ends the program by its own signal, then by force; resolves when it is gone. */
export const end = async ({ program, ref }: Launched, state: State): Promise<void> => {
  if (ref) await endProcess(ref, { signal: program.stopSignal, withinMs: program.stopWithinMs });
  state.forget(program.name);
};

/** Ends the program at once, without waiting. */
export const kill = ({ ref }: Launched): void => {
  if (ref) signalProcess(ref, 'SIGKILL');
};

// Keeps processes up: starts them, waits until they answer, starts them again when they die, ends them in order.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LogFile, openLog, tailOf } from './logs.ts';
import { endProcess, identify, signalProcess } from './processes.ts';
import type { State } from './state.ts';

/** What to run, how to see that it works, and how to end it. */
export type Program = {
  name: string;
  file: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd?: string;
  stopSignal: NodeJS.Signals;
  stopWithinMs: number;
  readyWithinMs: number;
  /** One look: resolves when the program really answers, throws while it does not. */
  ready(): Promise<unknown>;
};

export type Supervisor = {
  /** Starts a program and resolves when it is ready; from then on it is kept running. */
  start(program: Program): Promise<void>;
  /** Ends the named programs, all at the same time; the others go on. */
  stop(names: readonly string[]): Promise<void>;
  /** No program starts any more; waiting starts are given up. */
  close(): void;
  /** Ends everything at once, without waiting. */
  kill(): void;
  pids(): Record<string, number>;
};

/** Thrown when a program does not become ready; the message quotes the end of its log. */
export class StartError extends Error {}

/** Thrown out of a waiting start when the supervisor is closed. */
export class ClosedError extends Error {}

type Running = {
  program: Program;
  child: ChildProcess | undefined;
  stopping: boolean;
  failures: number;
};

const firstPauseMs = 500;
const longestPauseMs = 10_000;
const settledAfterMs = 30_000;
const pollMs = 50;

/** How long to wait before the restart after `failures` deaths in a row, in ms. */
export const restartPauseMs = (failures: number): number =>
  Math.min(longestPauseMs, firstPauseMs * 2 ** Math.max(0, failures - 1));

const describeEnd = (child: ChildProcess): string =>
  child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;

const hasEnded = (child: ChildProcess): boolean =>
  child.exitCode !== null || child.signalCode !== null;

const startError = (name: string, what: string, log: LogFile): StartError => {
  const quoted = tailOf(log, 20).map((line) => `    ${line}`);
  return new StartError(
    [`${name} ${what}. The end of its log (${log.path}):`, ...quoted].join('\n'),
  );
};

/** Creates a supervisor that logs to `<state>/logs` and reports to `say`. */
export const createSupervisor = (deps: {
  state: State;
  say(line: string): void;
  /** Called after a program came up again under another pid. */
  onRestart?(): void;
}): Supervisor => {
  const { state, say } = deps;
  const running = new Map<string, Running>();
  let closed = false;

  const launch = (entry: Running): { child: ChildProcess; log: LogFile } => {
    const { program } = entry;
    const log = openLog(state.at('logs', `${program.name}.log`));
    const child = spawn(program.file, program.args, {
      env: program.env,
      ...(program.cwd === undefined ? {} : { cwd: program.cwd }),
      // A session of its own: the terminal's Ctrl-C reaches us alone, and we end things in order.
      detached: true,
      stdio: ['ignore', log.descriptor, log.descriptor],
    });
    closeSync(log.descriptor);
    child.on('error', (error) => say(`${program.name} could not be run: ${error.message}`));
    if (child.pid !== undefined) state.record(program.name, child.pid, program.stopSignal);
    entry.child = child;
    return { child, log };
  };

  const untilReady = async (entry: Running, child: ChildProcess, log: LogFile): Promise<void> => {
    const { program } = entry;
    const deadline = Date.now() + program.readyWithinMs;
    let last = '';
    while (Date.now() < deadline) {
      if (closed || entry.stopping) throw new ClosedError();
      if (child.pid === undefined) throw new StartError(`${program.name} could not be run.`);
      if (hasEnded(child)) throw startError(program.name, `ended (${describeEnd(child)})`, log);
      try {
        await program.ready();
        return;
      } catch (error) {
        last = error instanceof Error ? error.message : String(error);
      }
      await sleep(pollMs);
    }
    const seconds = Math.round(program.readyWithinMs / 1000);
    throw startError(program.name, `was not ready after ${seconds} s (${last})`, log);
  };

  const restart = async (entry: Running): Promise<void> => {
    const { name } = entry.program;
    for (;;) {
      entry.failures += 1;
      const pauseMs = restartPauseMs(entry.failures);
      say(`${name} ended by itself; starting it again in ${pauseMs / 1000} s.`);
      await sleep(pauseMs);
      if (closed || entry.stopping) return;
      try {
        await bringUp(entry);
        say(`${name} is up again.`);
        deps.onRestart?.();
        return;
      } catch (error) {
        if (error instanceof ClosedError) return;
        say(error instanceof Error ? error.message : String(error));
        await endChild(entry);
      }
    }
  };

  const bringUp = async (entry: Running): Promise<void> => {
    const { child, log } = launch(entry);
    await untilReady(entry, child, log);
    const readyAt = Date.now();
    const onEnd = () => {
      if (closed || entry.stopping) return;
      if (Date.now() - readyAt > settledAfterMs) entry.failures = 0;
      void restart(entry);
    };
    if (hasEnded(child)) onEnd();
    else child.once('exit', onEnd);
  };

  const endChild = async (entry: Running): Promise<void> => {
    const { child, program } = entry;
    if (child?.pid !== undefined && !hasEnded(child)) {
      await endProcess(identify(child.pid), {
        signal: program.stopSignal,
        withinMs: program.stopWithinMs,
      });
    }
    state.forget(program.name);
  };

  return {
    start: async (program) => {
      if (closed) throw new ClosedError();
      const entry: Running = { program, child: undefined, stopping: false, failures: 0 };
      running.set(program.name, entry);
      await bringUp(entry);
    },
    stop: async (names) => {
      const entries = names.flatMap((name) => running.get(name) ?? []);
      for (const entry of entries) entry.stopping = true;
      await Promise.all(entries.map(endChild));
      for (const name of names) running.delete(name);
    },
    close: () => {
      closed = true;
    },
    kill: () => {
      closed = true;
      for (const { child } of running.values()) {
        if (child?.pid !== undefined && !hasEnded(child)) {
          signalProcess(identify(child.pid), 'SIGKILL');
        }
      }
    },
    pids: () =>
      Object.fromEntries(
        [...running].flatMap(([name, { child }]) =>
          child?.pid === undefined ? [] : [[name, child.pid]],
        ),
      ),
  };
};

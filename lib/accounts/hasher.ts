// Hashing in a process of its own: it never holds up the event loop, and may die without harm.
import { type ChildProcess, fork } from 'node:child_process';
import { fail } from '../kernel/errors.ts';
import type { Hashing, HashingAnswer, HashingTask } from './hashing.ts';

const program = new URL('./hashing.ts', import.meta.url);
const idleMs = 30_000;
/** A hash takes 20 ms of a free core; without one it may take long, but not for ever. */
const taskMs = 20_000;

export type Hasher = {
  /**
   * One task at a time.
   * @throws SERVICE_UNAVAILABLE when the process ends before it answers; Error when the task itself fails
   */
  run<Name extends keyof Hashing>(name: Name, given: Hashing[Name][0]): Promise<Hashing[Name][1]>;
  /** Ends the process. */
  close(): void;
};

/**
 * Starts the process. It has the share of a core that any process has: at a lower priority a busy machine starves it,
 * and logins and sign-ups wait until they are refused. What it may take from sends is bounded by how often it is given
 * work (passwords.ts).
 */
export const startHashing = (): ChildProcess => {
  const child = fork(program, {
    // A session, so a group, of its own; no secret of ours; Argon2's memory is outside of the heap.
    ...{ detached: true, env: {}, execArgv: ['--max-old-space-size=24'] },
    ...{ serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  });
  child.unref();
  return child;
};

const ended = (how: unknown) =>
  fail(
    'SERVICE_UNAVAILABLE',
    { retry_after_seconds: 1 },
    { cause: new Error(`The process that hashes ended: ${how}.`) },
  );

/** Gives the process a task; whoever waits for its answer keeps this process alive, an idle child does not. */
const ask = (child: ChildProcess, task: HashingTask): Promise<unknown> =>
  new Promise((resolve, reject) => {
    if (!child.connected) throw ended('it did not start');
    const settle = (act: () => void): void => {
      clearTimeout(late);
      child.off('message', onAnswer).off('exit', onExit).off('error', onError);
      child.unref();
      child.channel?.unref();
      act();
    };
    const onAnswer = (said: HashingAnswer): void =>
      settle(() => ('result' in said ? resolve(said.result) : reject(new Error(said.failed))));
    const onExit = (code: number | null, signal: string | null): void =>
      settle(() => reject(ended(signal ?? `code ${code}`)));
    const onError = (error: Error): void => settle(() => reject(ended(error.message)));
    const late = setTimeout(() => child.kill('SIGKILL'), taskMs);
    child.on('message', onAnswer).on('exit', onExit).on('error', onError);
    child.ref();
    child.channel?.ref();
    child.send(task, (error) => error && onError(error));
  });

/** The process is there from the first task until half a minute after the last. */
export const createHasher = (start: () => ChildProcess = startHashing): Hasher => {
  let child: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;

  const close = (): void => {
    clearTimeout(idle);
    child?.kill('SIGKILL');
    child = undefined;
  };

  const open = (): ChildProcess => {
    const started = start();
    const gone = (): void => {
      if (child === started) child = undefined;
    };
    started.once('exit', gone).on('error', gone);
    return started;
  };

  return {
    close,
    run: async (name, given) => {
      clearTimeout(idle);
      if (!child?.connected) child = open();
      try {
        return (await ask(child, { name, given } as HashingTask)) as never;
      } finally {
        idle = setTimeout(close, idleMs).unref();
      }
    },
  };
};

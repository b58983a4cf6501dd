// Keeps programs up: starts them again when they die by themselves, and ends them when asked.
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ClosedError,
  end,
  hasEnded,
  kill,
  type Launched,
  launch,
  type Program,
  untilReady,
} from './program.ts';
import type { State } from './state.ts';

export type Supervisor = {
  /** Starts a program and resolves when it is ready; from then on it is kept running. */
  start(program: Program): Promise<void>;
  /** Ends the named programs, all at the same time; the others go on. */
  stop(names: readonly string[]): Promise<void>;
  /** Nothing is started any more; waiting starts are given up. */
  close(): void;
  /** Ends everything at once, without waiting. */
  kill(): void;
  pids(): Record<string, number>;
};

type Deps = {
  state: State;
  say(line: string): void;
  /** Called when a program came up again under another pid. */
  onRestart(): void;
};

/** A supervised program: what runs for it now, and how often it died in a row. */
type Entry = { launched: Launched; stopping: boolean; deaths: number };

const firstPauseMs = 500;
const longestPauseMs = 10_000;
const settledAfterMs = 30_000;

/** How long to wait before the restart after `deaths` deaths in a row, in ms. */
export const restartPauseMs = (deaths: number): number =>
  Math.min(longestPauseMs, firstPauseMs * 2 ** Math.max(0, deaths - 1));

const createRestarts = (deps: Deps, isClosed: () => boolean) => {
  const bringUp = async (entry: Entry): Promise<void> => {
    await untilReady(entry.launched, () => isClosed() || entry.stopping);
    watch(entry);
  };

  const watch = (entry: Entry): void => {
    const readyAt = Date.now();
    const onEnd = () => {
      if (isClosed() || entry.stopping) return;
      if (Date.now() - readyAt > settledAfterMs) entry.deaths = 0;
      void bringBack(entry);
    };
    if (hasEnded(entry.launched)) onEnd();
    else entry.launched.child.once('exit', onEnd);
  };

  const bringBack = async (entry: Entry): Promise<void> => {
    const { program } = entry.launched;
    entry.deaths += 1;
    const pauseMs = restartPauseMs(entry.deaths);
    deps.say(`${program.name} ended by itself; starting it again in ${pauseMs / 1000} s.`);
    await sleep(pauseMs);
    if (isClosed() || entry.stopping) return;
    entry.launched = launch(program, deps.state);
    try {
      await bringUp(entry);
      deps.say(`${program.name} is up again.`);
      deps.onRestart();
    } catch (error) {
      if (error instanceof ClosedError) return;
      deps.say(error instanceof Error ? error.message : String(error));
      await end(entry.launched, deps.state);
      void bringBack(entry);
    }
  };

  return { bringUp };
};

/** Creates a supervisor whose programs log to `<state>/logs`. */
export const createSupervisor = (deps: Deps): Supervisor => {
  const entries = new Map<string, Entry>();
  let closed = false;
  const { bringUp } = createRestarts(deps, () => closed);

  return {
    start: async (program) => {
      if (closed) throw new ClosedError();
      const entry: Entry = { launched: launch(program, deps.state), stopping: false, deaths: 0 };
      entries.set(program.name, entry);
      await bringUp(entry);
    },
    stop: async (names) => {
      const chosen = names.flatMap((name) => entries.get(name) ?? []);
      for (const entry of chosen) entry.stopping = true;
      await Promise.all(chosen.map(({ launched }) => end(launched, deps.state)));
      for (const name of names) entries.delete(name);
    },
    close: () => {
      closed = true;
    },
    kill: () => {
      closed = true;
      for (const { launched } of entries.values()) kill(launched);
    },
    pids: () =>
      Object.fromEntries(
        [...entries].flatMap(([name, { launched }]) =>
          launched.ref ? [[name, launched.ref.pid]] : [],
        ),
      ),
  };
};

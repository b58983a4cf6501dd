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
  StartError,
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
type Entry = { launched: Launched; up: boolean; stopping: boolean; deaths: number };

const firstPauseMs = 500;
const longestPauseMs = 10_000;
const settledAfterMs = 30_000;
const pollMs = 100;

/** How long to wait before the restart after `deaths` deaths in a row, in ms. */
export const restartPauseMs = (deaths: number): number =>
  Math.min(longestPauseMs, firstPauseMs * 2 ** Math.max(0, deaths - 1));

const createRestarts = (
  { state, say, onRestart }: Deps,
  entries: ReadonlyMap<string, Entry>,
  isClosed: () => boolean,
) => {
  const isOver = (entry: Entry): boolean => isClosed() || entry.stopping;

  const bringUp = async (entry: Entry): Promise<void> => {
    await untilReady(entry.launched, () => isOver(entry));
    entry.up = true;
    watch(entry);
  };

  const watch = (entry: Entry): void => {
    const readyAt = Date.now();
    const onEnd = () => {
      entry.up = false;
      if (isOver(entry)) return;
      if (Date.now() - readyAt > settledAfterMs) entry.deaths = 0;
      void bringBack(entry);
    };
    if (hasEnded(entry.launched)) onEnd();
    else entry.launched.child.once('exit', onEnd);
  };

  // A worker that is started while its broker is still coming up would only die again.
  const needsAreUp = async (entry: Entry): Promise<void> => {
    const { needs = [] } = entry.launched.program;
    while (!isOver(entry) && needs.some((name) => entries.get(name)?.up === false)) {
      await sleep(pollMs);
    }
  };

  const tryOnce = async (entry: Entry): Promise<boolean> => {
    const { program } = entry.launched;
    entry.launched = launch(program, state);
    try {
      await bringUp(entry);
      return true;
    } catch (error) {
      if (error instanceof ClosedError) return true;
      say(error instanceof StartError ? error.headline : String(error));
      await end(entry.launched, state);
      return false;
    }
  };

  const bringBack = async (entry: Entry): Promise<void> => {
    const { name } = entry.launched.program;
    for (let up = false; !up; ) {
      entry.deaths += 1;
      const pauseMs = restartPauseMs(entry.deaths);
      say(`${name} ended by itself; starting it again in ${pauseMs / 1000} s.`);
      await sleep(pauseMs);
      await needsAreUp(entry);
      if (isOver(entry)) return;
      up = await tryOnce(entry);
    }
    if (isOver(entry)) return;
    say(`${name} is up again.`);
    onRestart();
  };

  return { bringUp };
};

/** Creates a supervisor whose programs log to `<state>/logs`. */
export const createSupervisor = (deps: Deps): Supervisor => {
  const entries = new Map<string, Entry>();
  let closed = false;
  const { bringUp } = createRestarts(deps, entries, () => closed);

  return {
    start: async (program) => {
      if (closed) throw new ClosedError();
      const launched = launch(program, deps.state);
      const entry: Entry = { launched, up: false, stopping: false, deaths: 0 };
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

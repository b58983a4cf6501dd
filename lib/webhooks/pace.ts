// The pace of a process: while it has all hands full, what comes waits in the broker and in MySQL, where it costs nothing.
import { setTimeout as pause } from 'node:timers/promises';

export type Pace = {
  /** Resolves when more may be taken in hand. */
  ready(): Promise<void>;
};

/** From this part of its time on, a process is busy: more at once would only mean more sockets and more memory. */
const busyFrom = 0.9;
/** Over at least so long, ms; what is older says nothing. */
const measuredMs = 20;
/** Attempts that keep a busy process at work. */
const enough = 64;
/** Attempts that hang beside other work are not waited for: nobody is held up longer than this, ms. */
const longestMs = 250;
const stepMs = 2;

export type Utilization = { active: number; idle: number; utilization: number };

/** `running` counts attempts that will soon have ended, `written` resolves when what has ended is written, but for a few. */
export const createPace = (deps: {
  running(): number;
  written(): Promise<void>;
  /** How much of its time the process has worked, since `before` or since it started. */
  utilization?(before?: Utilization): Utilization;
}): Pace => {
  const { running, written } = deps;
  const utilization = deps.utilization ?? performance.eventLoopUtilization;
  let before = utilization();
  let busy = false;

  const look = (): void => {
    const { active, idle, utilization: part } = utilization(before);
    if (active + idle < measuredMs) return;
    busy = part >= busyFrom;
    before = utilization();
  };

  return {
    ready: async () => {
      await written();
      look();
      for (let waited = 0; busy && running() > enough && waited < longestMs; waited += stepMs) {
        await pause(stepMs);
        look();
      }
    },
  };
};

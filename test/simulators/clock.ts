// Time of the simulators: a clock that tests can replace, and timers that end with the simulators.

export type Clock = { now(): number };

/** Timers that are all cancelled at once; none keeps the process alive. */
export type Timers = {
  /** Runs `run` after `ms`. */
  after(ms: number, run: () => void): void;
  wait(ms: number): Promise<void>;
  cancelAll(): void;
};

/** Creates timers; after `cancelAll` none fires, and waits end at once. */
export const createTimers = (): Timers => {
  const open = new Map<NodeJS.Timeout, (() => void) | undefined>();
  let ended = false;
  const start = (ms: number, run: () => void, cancelled?: () => void) => {
    if (ended) return cancelled?.();
    const timer = setTimeout(() => {
      open.delete(timer);
      run();
    }, ms);
    timer.unref();
    open.set(timer, cancelled);
  };
  return {
    after: (ms, run) => {
      start(ms, run);
    },
    wait: (ms) => new Promise((resolve) => start(ms, resolve, resolve)),
    cancelAll: () => {
      ended = true;
      for (const [timer, cancelled] of open) {
        clearTimeout(timer);
        cancelled?.();
      }
      open.clear();
    },
  };
};

// Groups single calls that arrive within a few milliseconds into one: one statement, one commit, one publish.

export type Grouper<I, O> = {
  /** Adds one item; resolves with its own result, or rejects with the group's error. */
  add(item: I): Promise<O>;
  /** Resolves when everything added so far has been run. */
  drain(): Promise<void>;
};

type Waiting<I, O> = { item: I; resolve(result: O): void; reject(error: unknown): void };

/** Calls back after `ms`, and with 0 at the end of this turn of the event loop; returns what calls it off. */
const later = (callback: () => void, ms: number): (() => void) => {
  if (ms > 0) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  }
  const immediate = setImmediate(callback);
  return () => clearImmediate(immediate);
};

/**
 * Collects items until `maxSize` are there or the first has waited `maxWaitMs` (0: to the end of this turn of the event
 * loop), then calls `run`, which returns one result per item in order. Groups run one after the other, so a slow run
 * makes the next group larger.
 */
export const createGrouper = <I, O>(options: {
  maxSize: number;
  maxWaitMs: number;
  run(items: I[]): Promise<O[]>;
  /**
   * Behind a group of at least `items`, the next one gathers for `waitMs`: under load few large groups cost much less
   * than many small ones, and nobody waits longer for it than the queue makes them wait anyway.
   */
  busy?: { items: number; waitMs: number };
  /** Whether one item of the group may be the cause of an error: then each is run alone. */
  blamesOne?(error: unknown): boolean;
}): Grouper<I, O> => {
  let waiting: Waiting<I, O>[] = [];
  let callOff: (() => void) | undefined;
  let running: Promise<void> | undefined;

  const runGroup = async (group: Waiting<I, O>[]): Promise<void> => {
    try {
      const results = await options.run(group.map((entry) => entry.item));
      group.forEach((entry, index) => {
        entry.resolve(results[index] as O);
      });
    } catch (error) {
      if (group.length > 1 && options.blamesOne?.(error)) {
        for (const entry of group) await runGroup([entry]);
        return;
      }
      for (const entry of group) entry.reject(error);
    }
  };

  const flush = (): void => {
    callOff?.();
    callOff = undefined;
    if (running !== undefined || waiting.length === 0) return;
    const group = waiting.slice(0, options.maxSize);
    waiting = waiting.slice(options.maxSize);
    running = runGroup(group).then(() => {
      running = undefined;
      if (options.busy && group.length >= options.busy.items && waiting.length < options.maxSize) {
        callOff = later(flush, options.busy.waitMs);
      } else flush();
    });
  };

  const add = (item: I): Promise<O> =>
    new Promise<O>((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (waiting.length >= options.maxSize) flush();
      // While a group runs, its end is what the next one waits for.
      else if (running === undefined) callOff ??= later(flush, options.maxWaitMs);
    });

  const drain = async (): Promise<void> => {
    while (waiting.length > 0 || running !== undefined) {
      flush();
      await running;
    }
  };

  return { add, drain };
};

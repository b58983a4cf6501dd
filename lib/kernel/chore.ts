// Work on the clock: again and again, never twice at once, and it ends when the process does.
import type { Log } from './log.ts';
import { describeError } from './redact.ts';

export type Chore = { start(): void; stop(): Promise<void> };

/** Runs `work` again and again, `everyMs` after it has ended; one that fails is logged and comes again. */
export const repeat = (work: () => Promise<void>, everyMs: number, log: Log): Chore => {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const round = (): void => {
    running = work()
      .catch((error: unknown) => log.warn({ reason: describeError(error) }, 'chore failed'))
      .then(() => {
        if (timer) timer = setTimeout(round, everyMs);
      });
  };
  return {
    start: () => {
      timer = setTimeout(round, everyMs);
    },
    stop: async () => {
      clearTimeout(timer);
      timer = undefined;
      await running;
    },
  };
};

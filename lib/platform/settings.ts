// What operators have set, as every process remembers it: asked for beside the work, whenever something is announced.
import { type Clock, minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Revocations } from '../keys/revocations.ts';

export type Remembered<T> = {
  /** What was last read. Asks nobody. */
  now(): T;
  /** Asks at once: for whoever has just changed something. Never throws. */
  refresh(): Promise<void>;
  start(): Promise<void>;
  stop(): void;
};

/** Together with the poll of announcements (keys/revocations.ts) and a query this stays under a second. */
const lookMs = 200;

/**
 * Keeps what `read` answers, and asks again when an announcement was heard, and once a minute. While it cannot be
 * asked, what was last known holds: an outage changes nothing.
 */
export const remember = <T>(
  deps: { revocations: Pick<Revocations, 'epoch'>; clock: Clock; log: Log },
  first: T,
  read: () => Promise<T>,
): Remembered<T> => {
  const { revocations, clock, log } = deps;
  let known = first;
  let asked: { epoch: string | undefined; at: number } | undefined;
  let asking = false;
  let timer: NodeJS.Timeout | undefined;

  const ask = async (): Promise<void> => {
    asking = true;
    // The epoch of before the question: what is announced meanwhile is asked for again.
    const now = { epoch: revocations.epoch(), at: clock.now() };
    try {
      known = await read();
      asked = now;
    } catch (error) {
      log.debug({ reason: describeError(error) }, 'what operators set was not read');
    } finally {
      asking = false;
    }
  };

  const look = (): void => {
    const fresh = asked?.epoch === revocations.epoch() && clock.now() - (asked?.at ?? 0) < minute;
    if (!(asked && fresh) && !asking) void ask();
  };

  return {
    now: () => known,
    refresh: ask,
    start: async () => {
      await ask();
      timer = setInterval(look, lookMs);
    },
    stop: () => clearInterval(timer),
  };
};

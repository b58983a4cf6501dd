// Where work waits for a place: so much at once, so much waiting and for so long, and whoever does not fit in is turned away.
import { randomInt } from 'node:crypto';
import { fail, type ServiceError } from '../kernel/errors.ts';

/** Not all who are turned away at once come back at once. */
const [retryFrom, retryTo] = [2, 5];
/** Who has waited for longer is told to come back: many clients do not wait for much more, and begin anew. */
const waitMs = 8_000;

/** What whoever is turned away is told. */
export const turnedAway = (): ServiceError =>
  fail('SERVICE_UNAVAILABLE', { retry_after_seconds: randomInt(retryFrom, retryTo + 1) });

export type Lobby = {
  /**
   * Runs the work once there is a place for it, in the order of arrival.
   * @throws SERVICE_UNAVAILABLE when too many wait already, or when its turn came too late
   */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** Whether whoever came now would be turned away. */
  isFull(): boolean;
  /** How many wait. */
  waiting(): number;
};

type Waiting = { since: number; go(): void; leave(error: ServiceError): void };

/**
 * A lobby in which `atOnce` pieces of work run and `waitingMax` wait. While others wait, a place rests for `restMs`
 * behind each piece: however many come, there is time between them for everything else.
 */
export const createLobby = (atOnce: number, waitingMax: number, { restMs = 0 } = {}): Lobby => {
  let running = 0;
  const waiting: Waiting[] = [];
  const isFull = (): boolean => running >= atOnce && waiting.length >= waitingMax;

  const place = async (): Promise<void> => {
    if (isFull()) throw turnedAway();
    if (running < atOnce) running++;
    // Whoever leaves hands its place over.
    else
      await new Promise<void>((go, leave) => waiting.push({ since: performance.now(), go, leave }));
  };

  const next = (): void => {
    const first = waiting.shift();
    if (!first) running--;
    else if (performance.now() - first.since <= waitMs) first.go();
    else {
      first.leave(turnedAway());
      next();
    }
  };

  return {
    isFull,
    enter: async (work) => {
      await place();
      try {
        return await work();
      } finally {
        if (restMs > 0 && waiting.length > 0) setTimeout(next, restMs);
        else next();
      }
    },
    waiting: () => waiting.length,
  };
};

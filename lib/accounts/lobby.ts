// Where work waits for a place: so much at once, so much waiting, and whoever does not fit in is turned away cheaply.
import { randomInt } from 'node:crypto';
import { fail } from '../kernel/errors.ts';

/** Not all who are turned away at once come back at once. */
const [retryFrom, retryTo] = [2, 5];
/** A hundred who are turned away at once are told in this many at a time: what else there is to do goes in between. */
const turnedAwayPerTurn = 4;

export type Lobby = {
  /**
   * Runs the work once there is a place for it, in the order of arrival.
   * @throws SERVICE_UNAVAILABLE when too many wait already
   */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** How many wait. */
  waiting(): number;
};

/** Lets callers go on, so many in each turn of the event loop. */
const createTurns = (perTurn: number) => {
  const waiting: (() => void)[] = [];
  const turn = (): void => {
    for (const go of waiting.splice(0, perTurn)) go();
    if (waiting.length > 0) setImmediate(turn);
  };
  return (): Promise<void> =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(turn);
    });
};

/**
 * A lobby in which `atOnce` pieces of work run and `waitingMax` wait. While others wait, a place
 * rests `rest` times as long as its last piece took: at 1 they take half of the time at most, however many they are.
 */
export const createLobby = (atOnce: number, waitingMax: number, { rest = 0 } = {}): Lobby => {
  let running = 0;
  const waiting: (() => void)[] = [];
  const turned = createTurns(turnedAwayPerTurn);

  const place = async (): Promise<void> => {
    if (running < atOnce) {
      running++;
      return;
    }
    if (waiting.length >= waitingMax) {
      await turned();
      throw fail('SERVICE_UNAVAILABLE', { retry_after_seconds: randomInt(retryFrom, retryTo + 1) });
    }
    // Whoever leaves hands its place over.
    await new Promise<void>((resolve) => waiting.push(resolve));
  };

  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else running--;
  };

  return {
    enter: async (work) => {
      await place();
      const startedAt = performance.now();
      try {
        return await work();
      } finally {
        const pause = waiting.length > 0 ? rest * (performance.now() - startedAt) : 0;
        if (pause > 0) setTimeout(leave, pause);
        else leave();
      }
    },
    waiting: () => waiting.length,
  };
};

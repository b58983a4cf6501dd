// A clock that runs with the system's and can be put forward by hand.
import type { Clock } from '../../lib/kernel/clock.ts';

export type HandClock = Clock & {
  /** Lets that many milliseconds pass at once. */
  forward(ms: number): void;
};

export const createHandClock = (): HandClock => {
  let ahead = 0;
  return {
    now: () => Date.now() + ahead,
    forward: (ms) => {
      ahead += ms;
    },
  };
};

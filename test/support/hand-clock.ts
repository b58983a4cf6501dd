// A clock that runs with the system's and can be put forward by hand.
import type { Clock } from '../../lib/kernel/clock.ts';

export type HandClock = Clock & {
  /** Lets that many milliseconds pass at once. */
  forward(ms: number): void;
  /** The time now by each setting that the clock has had: what was stamped before it was put forward fits one of them. */
  settings(): number[];
};

export const createHandClock = (): HandClock => {
  let ahead = 0;
  const earlier: number[] = [];
  return {
    now: () => Date.now() + ahead,
    forward: (ms) => {
      earlier.push(ahead);
      ahead += ms;
    },
    settings: () => [ahead, ...earlier].map((each) => Date.now() + each),
  };
};

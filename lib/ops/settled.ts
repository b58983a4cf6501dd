// What the processes have settled since the last time somebody wrote it down.
import type { SeenPulse } from '../pulse/rules.ts';
import { type Counted, settledBetween } from './rules.ts';

export type SettledMeter = {
  /** Settled jobs by job since the last `take`; this one counts as the new beginning. */
  take(pulses: readonly SeenPulse[]): Record<string, number>;
  /** The same without a new beginning. */
  peek(pulses: readonly SeenPulse[]): Record<string, number>;
};

const countedOf = (pulses: readonly SeenPulse[]): Counted =>
  new Map(pulses.map(({ id, at, doing }) => [id, { at, handled: doing.handled }]));

/** The first `take` answers nothing: what was settled before it, nobody here has seen begin. */
export const createSettledMeter = (): SettledMeter => {
  let before: Counted | undefined;
  const since = (now: Counted) => (before ? settledBetween(before, now) : {});
  return {
    peek: (pulses) => since(countedOf(pulses)),
    take: (pulses) => {
      const now = countedOf(pulses);
      const settled = since(now);
      before = now;
      return settled;
    },
  };
};

// What the processes report of the books: when they were last compared, and what was found.
import type { SeenPulse } from './rules.ts';

export type Proof = { at: number; mismatches: number };

const figureOf = ({ metrics }: Pick<SeenPulse, 'metrics'>, name: string): number | undefined =>
  metrics.find((metric) => metric.name === name)?.values[0]?.value;

/** The newest proof of the books that any process tells of; null when none does. */
export const lastProof = (pulses: readonly Pick<SeenPulse, 'metrics'>[]): Proof | null =>
  pulses
    .flatMap((pulse): Proof[] => {
      const mismatches = figureOf(pulse, 'tessera_reconcile_mismatches');
      const seconds = figureOf(pulse, 'tessera_reconcile_timestamp_seconds');
      return mismatches === undefined || seconds === undefined
        ? []
        : [{ at: seconds * 1_000, mismatches }];
    })
    .sort((one, other) => other.at - one.at)[0] ?? null;

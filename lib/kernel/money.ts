// Money: integers of micro-USD inside, USD numbers with at most six decimals outside.

const microsPerUsd = 1_000_000;

/** The USD number that the wire shows for an amount in micro-USD. */
export const toUsd = (micros: number): number => {
  if (!Number.isSafeInteger(micros))
    throw new RangeError('an amount must be a safe integer of micro-USD');
  return micros / microsPerUsd;
};

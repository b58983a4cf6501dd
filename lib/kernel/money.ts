// Money: integers of micro-USD inside, USD numbers with at most six decimals outside.

const microsPerUsd = 1_000_000;

/** The micro-USD of an amount in USD with at most six decimals. @throws RangeError when it is not exact */
export const fromUsd = (usd: number): number => {
  const micros = Math.round(usd * microsPerUsd);
  if (!Number.isSafeInteger(micros) || micros / microsPerUsd !== usd)
    throw new RangeError('an amount has at most six decimals');
  return micros;
};

/** The USD number that the wire shows for an amount in micro-USD. */
export const toUsd = (micros: number): number => {
  if (!Number.isSafeInteger(micros))
    throw new RangeError('an amount must be a safe integer of micro-USD');
  return micros / microsPerUsd;
};

/** A number as people write amounts; NaN for all else: 0x10 and 1e3 are more likely slips than amounts. */
export const plainDecimal = (text: string): number =>
  /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;

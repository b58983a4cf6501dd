// The clock: a value handed in, so that tests can hold it still.

/** Source of the current time in milliseconds since the Unix epoch. */
export type Clock = { now(): number };

export const systemClock: Clock = { now: () => Date.now() };

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

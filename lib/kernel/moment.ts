// Moments as callers write them: RFC 3339 with an offset, or a date.

const pattern =
  /^(\d{4}-\d{2}-\d{2})(?:T(?:[01]\d|2[0-3]):\d{2}(?::\d{2}(?:\.(\d{1,9}))?)?(?:Z|[+-]\d{2}:\d{2}))?$/i;

/** Date.parse takes the 30th of February for a day in March. */
const isDate = (date: string): boolean => {
  const midnight = Date.parse(date);
  return !Number.isNaN(midnight) && new Date(midnight).toISOString().startsWith(date);
};

/**
 * The moment in ms, or undefined when the text is none, or one before 1970. A date is its midnight in UTC. What is
 * finer than a millisecond is rounded up: as a begin (inclusive) and as an end (exclusive) that parts whole
 * milliseconds where the text does.
 */
export const readMoment = (text: string): number | undefined => {
  const [, date = '', fraction = ''] = pattern.exec(text) ?? [];
  if (!isDate(date)) return undefined;
  const whole = Date.parse(fraction === '' ? text : text.replace(`.${fraction}`, ''));
  const at = whole + Math.ceil(Number(fraction.padEnd(9, '0')) / 1e6);
  return Number.isNaN(at) || at < 0 ? undefined : at;
};

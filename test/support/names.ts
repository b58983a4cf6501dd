// What test resources share: the addresses of the test engines, and names no other test uses.
import { randomBytes } from 'node:crypto';

/** Address of a test engine. Throws when the tests were not started through `npm test`. */
export const testUrl = (variable: string): URL => {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set: run the tests with npm test.`);
  return new URL(value);
};

/** A name that no other test file or process has: `prefix`, the pid and a random part. */
export const uniqueName = (prefix: string): string =>
  `${prefix}_${process.pid}_${randomBytes(4).toString('hex')}`;

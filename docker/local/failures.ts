// What AVA said about failures, kept so that it can be said once more at the very end of a long log.
import { stripVTControlCharacters } from 'node:util';

// AVA marks tests and hooks that failed and files that ended badly with ✘, and pending ones with ◌.
const marks = [
  /^ *✘ /,
  /^ *◌ /,
  /^ *(Uncaught exception|Unhandled rejection) in /,
  /^Failed to exit when running /,
];

export type Failures = {
  /** Takes a piece of AVA's output, cut anywhere. */
  take(text: string): void;
  /** The lines that name a failure, each once, in the order of their first appearance. */
  list(): string[];
};

export const createFailures = (): Failures => {
  const found = new Set<string>();
  let rest = '';
  return {
    take: (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.map(stripVTControlCharacters)) {
        if (marks.some((mark) => mark.test(line))) found.add(line.trim());
      }
    },
    list: () => [...found],
  };
};

/** The last words on a run of the suite: how long it took and, when it failed, what failed. */
export const describeEnd = (code: number, failed: readonly string[], seconds: number): string => {
  if (code === 0) return `The suite passed in ${seconds} s.`;
  const names = failed.length > 0 ? failed : ['No test is named as failing: the log above tells.'];
  return [`The suite failed after ${seconds} s (exit code ${code}):`, ...names].join('\n  ');
};

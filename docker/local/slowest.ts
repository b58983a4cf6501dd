// Which test files took longest, as each of them noted it in a line of JSON (test/support/file-times.ts).

/** `ms` from the start of a file's thread to its end, `cpuMs` what that thread computed meanwhile. */
export type FileTime = { file: string; ms: number; cpuMs: number };

const shown = 10;

const readLine = (line: string): FileTime[] => {
  try {
    return [JSON.parse(line) as FileTime];
  } catch {
    // A process that was killed may leave half a line.
    return [];
  }
};

/** The times in `text`, a line each; what is no line of them is passed over. */
export const readTimes = (text: string): FileTime[] =>
  text.split('\n').filter(Boolean).flatMap(readLine);

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** The ten slowest of several files, the slowest first, and all files together; undefined for one file or none. */
export const describeSlowest = (times: readonly FileTime[]): string | undefined => {
  if (times.length < 2) return undefined;
  const slowest = times.toSorted((one, other) => other.ms - one.ms).slice(0, shown);
  const sum = (of: (time: FileTime) => number) =>
    times.reduce((total, time) => total + of(time), 0);
  const all = `${times.length} files: ${seconds(sum(({ ms }) => ms))}, of it ${seconds(sum(({ cpuMs }) => cpuMs))} of computing`;
  const named = slowest.map(
    ({ file, ms, cpuMs }) => `${seconds(ms)} (${seconds(cpuMs)} of computing) ${file}`,
  );
  return [`The slowest of ${all}.`, ...named].join('\n  ');
};

// Log files of the processes: opened for appending, rotated once, and quoted when one fails.
import { closeSync, existsSync, openSync, readSync, renameSync, statSync } from 'node:fs';

const rotateAtBytes = 20_000_000;
const quotedBytes = 16_000;

/** An open log: the descriptor a child writes to, and where its part begins. */
export type LogFile = { path: string; descriptor: number; startedAt: number };

/** Opens a log for appending; an overlong one is put aside as `<path>.1`. The caller closes it. */
export const openLog = (path: string): LogFile => {
  if (existsSync(path) && statSync(path).size > rotateAtBytes) renameSync(path, `${path}.1`);
  const descriptor = openSync(path, 'a');
  return { path, descriptor, startedAt: statSync(path).size };
};

/** The last `lines` lines written since the log was opened. */
export const tailOf = ({ path, startedAt }: LogFile, lines: number): string[] => {
  if (!existsSync(path)) return [];
  const size = statSync(path).size;
  const from = Math.max(startedAt, size - quotedBytes);
  const buffer = Buffer.alloc(Math.max(0, size - from));
  const descriptor = openSync(path, 'r');
  readSync(descriptor, buffer, 0, buffer.length, from);
  closeSync(descriptor);
  return buffer.toString('utf8').trimEnd().split('\n').slice(-lines);
};

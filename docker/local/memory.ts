// A folder in memory for the data of disposable engines: making and dropping a database there costs half the time.
import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';

const place = '/dev/shm';
// A whole run keeps about 0.5 GB; what it would lack in memory later, it had better keep on the disk from the start.
const roomBytes = 2 * 1024 ** 3;
const memoryBytes = 4 * 1024 ** 3;

const pathFor = (folder: string): string =>
  `${place}/tessera-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`;

const hasRoom = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(place);
    return bavail * bsize >= roomBytes && freemem() >= memoryBytes;
  } catch {
    return false;
  }
};

/** Makes the folder in memory that belongs to a state folder; undefined where there is no room for one. */
export const openMemory = (folder: string): string | undefined => {
  if (!hasRoom()) return undefined;
  const path = pathFor(folder);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
};

/** Gives the memory of a state folder back; one that has none is no error. */
export const discardMemory = (folder: string): void =>
  rmSync(pathFor(folder), { recursive: true, force: true });

// Free loopback ports, remembered so that a restart comes up at the same addresses.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

// Below the range from which Linux takes the ports of outgoing connections (32768 and up).
const lowest = 20_000;
const highest = 32_000;

/** Whether `port` can be listened on at 127.0.0.1 right now. */
export const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

const pickFree = async (taken: ReadonlySet<number>): Promise<number> => {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  throw new Error(`No free port found between ${lowest} and ${highest}.`);
};

const readRemembered = (file: string): Record<string, unknown> => {
  try {
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  } catch {
    return {};
  }
};

/** One free port per name; those remembered in `file` are kept while they are free. */
export const reservePorts = async <Name extends string>(
  names: readonly Name[],
  file: string,
): Promise<Record<Name, number>> => {
  const remembered = readRemembered(file);
  const ports = {} as Record<Name, number>;
  const taken = new Set<number>();
  for (const name of names) {
    const before = remembered[name];
    const kept = typeof before === 'number' && !taken.has(before) && (await isFree(before));
    ports[name] = kept ? before : await pickFree(taken);
    taken.add(ports[name]);
  }
  writeFileSync(file, `${JSON.stringify(ports, null, 2)}\n`);
  return ports;
};

// What processes use, read from /proc (proc(5)): CPU time, resident memory, and which process listens on a port.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

// USER_HZ: the unit of CPU times in /proc is 1/100 s on every Linux that Node runs on.
const tickMs = 10;

const fieldsOf = (path: string): string[] => {
  const text = readFileSync(path, 'utf8');
  return text
    .slice(text.lastIndexOf(')') + 1)
    .trim()
    .split(/\s+/);
};

const orUndefined = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

/** CPU time a process has used so far, user and system, in ms; undefined when it is gone. */
export const cpuOf = (pid: number): number | undefined =>
  orUndefined(() => {
    const fields = fieldsOf(`/proc/${pid}/stat`);
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  });

/** CPU time of the whole machine so far that was not idle, in ms. */
export const busyCpu = (): number | undefined =>
  orUndefined(() => {
    const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line
      .split(/\s+/)
      .slice(1)
      .map(Number);
    return (user + nice + system + irq + softirq) * tickMs;
  });

/** Resident memory of a process in MB (10^6 bytes, as limits are given); undefined when it is gone. */
export const memoryOf = (pid: number): number | undefined =>
  orUndefined(() => {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(text) ?? [];
    return kib === undefined ? undefined : (Number(kib) * 1024) / 1e6;
  });

const listening = '0A';

const inodeOf = (port: number): string | undefined => {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(
    (path) => orUndefined(() => readFileSync(path, 'utf8').split('\n').slice(1)) ?? [],
  );
  const fields = lines.map((line) => line.trim().split(/\s+/));
  return fields.find((line) => line[1]?.endsWith(suffix) && line[3] === listening)?.[9];
};

const holds = (pid: string, link: string): boolean =>
  (orUndefined(() => readdirSync(`/proc/${pid}/fd`)) ?? []).some(
    (fd) => orUndefined(() => readlinkSync(`/proc/${pid}/fd/${fd}`)) === link,
  );

/** The process that listens on a port of this machine; undefined when there is none that we may see. */
export const listenerOn = (port: number): number | undefined => {
  const inode = inodeOf(port);
  if (inode === undefined) return undefined;
  const pids = orUndefined(() => readdirSync('/proc')) ?? [];
  const found = pids.find((pid) => /^\d+$/.test(pid) && holds(pid, `socket:[${inode}]`));
  return found === undefined ? undefined : Number(found);
};

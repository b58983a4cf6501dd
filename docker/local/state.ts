// The state folder of one stack: who runs it, which processes it started, its secrets and its logs.
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { claim } from './claim.ts';
import { discardMemory } from './memory.ts';
import { endProcess, identify, isRunning, type ProcessRef } from './processes.ts';

type Entry = ProcessRef & { signal: NodeJS.Signals };
type Register = { owner: ProcessRef; stopping: boolean; processes: Record<string, Entry> };

/** The folder of a stack. */
export type State = {
  folder: string;
  /** Path inside the folder. */
  at(...parts: string[]): string;
  /** Remembers that `name` runs as `pid` and is ended by `signal`. */
  record(name: string, pid: number, signal: NodeJS.Signals): void;
  forget(name: string): void;
  /** Random text of this stack, made once and kept. */
  secret(name: string, make?: () => string): string;
  /** Writes a JSON file at once or not at all. */
  writeJson(name: string, value: unknown, mode?: number): void;
  /** Tells the next command that this one is about to give the folder free. */
  stopping(): void;
  /** Gives the folder free for the next command. */
  release(): void;
  /** Throws everything away but the logs. */
  discard(): void;
};

/** Thrown when another live process owns the folder. */
export class StateInUseError extends Error {}

const readJson = <T>(path: string): T | undefined => {
  try {
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : undefined;
  } catch {
    return undefined;
  }
};

const registerFile = 'processes.json';

const readRegister = (folder: string): Register | undefined =>
  readJson<Register>(join(folder, registerFile));

const endAll = async (processes: Register['processes']): Promise<void> => {
  const ends = Object.values(processes).map((ref) =>
    endProcess(ref, { signal: ref.signal, withinMs: 15_000 }),
  );
  await Promise.all(ends);
};

/** Ends every process that a killed run left behind in `folder`; those of a living one go on. */
export const endLeftovers = async (folder: string): Promise<void> => {
  const register = readRegister(folder);
  if (!register || isRunning(register.owner)) return;
  await endAll(register.processes);
  discardMemory(folder);
};

const inUse = (folder: string): StateInUseError => {
  const owner = readRegister(folder)?.owner.pid ?? 'unknown';
  return new StateInUseError(
    `Tessera runs here already (process ${owner}, data in ${folder}). End it first, or set TESSERA_STATE to another folder.`,
  );
};

// A run that is stopping gives the folder free in a moment.
const claimWhenFree = async (folder: string): Promise<void> => {
  while (!(await claim(folder))) {
    if (!readRegister(folder)?.stopping) throw inUse(folder);
    await sleep(100);
  }
};

// The folder, or the first of folder-2, folder-3, … that no other command is using.
const claimUnused = async (folder: string): Promise<string> => {
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? folder : `${folder}-${number}`;
    if (await claim(candidate)) return candidate;
  }
};

const random = (): string => randomBytes(20).toString('hex');

const emptyFolder = (folder: string, kept: readonly string[] = []): void => {
  const names = readdirSync(folder).filter((name) => !kept.includes(name));
  for (const name of names) rmSync(join(folder, name), { recursive: true });
};

/**
 * Opens the folder and takes it over from a run that was killed. `wipe` starts with empty data.
 * Waits for an owner that is stopping; `orNext` takes a folder beside it instead when it is in use.
 * @throws StateInUseError when its owner is alive and goes on.
 */
export const openState = async (
  wanted: string,
  options: { wipe: boolean; orNext: boolean },
): Promise<State> => {
  const folder = options.orNext ? await claimUnused(wanted) : wanted;
  if (!options.orNext) await claimWhenFree(folder);
  mkdirSync(folder, { recursive: true });

  const at = (...parts: string[]) => join(folder, ...parts);
  const writeJson = (name: string, value: unknown, mode = 0o644) => {
    const draft = at(`${name}.new`);
    writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode });
    renameSync(draft, at(name));
  };
  const register: Register = {
    owner: identify(process.pid),
    stopping: false,
    processes: readRegister(folder)?.processes ?? {},
  };
  const save = () => writeJson(registerFile, register);
  save();
  await endAll(register.processes);
  register.processes = {};
  if (options.wipe) {
    discardMemory(folder);
    emptyFolder(folder);
  }
  mkdirSync(at('logs'), { recursive: true });
  save();
  const secrets = readJson<Record<string, string>>(at('secrets.json')) ?? {};

  return {
    folder,
    at,
    writeJson,
    record: (name, pid, signal) => {
      register.processes[name] = { ...identify(pid), signal };
      save();
    },
    forget: (name) => {
      delete register.processes[name];
      save();
    },
    stopping: () => {
      register.stopping = true;
      save();
    },
    release: () => rmSync(at(registerFile), { force: true }),
    discard: () => {
      discardMemory(folder);
      emptyFolder(folder, ['logs']);
    },
    secret: (name, make = random) => {
      const known = secrets[name];
      if (known !== undefined) return known;
      const made = make();
      secrets[name] = made;
      writeJson('secrets.json', secrets, 0o600);
      return made;
    },
  };
};

// A file that says a process lives and whether it can work: for the probes of processes that answer no requests.
import { unlink, writeFile } from 'node:fs/promises';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';

export type AliveFile = {
  /** Touches the file. Never throws: a full disk must not end a worker. */
  say(ready: boolean): Promise<void>;
  /** Takes it away: who reads it now reads of nobody. */
  end(): Promise<void>;
};

const nothing: AliveFile = { say: () => Promise.resolve(), end: () => Promise.resolve() };

/** `path` '' writes nothing. The file holds `ready` or `waiting`; how old it is tells whether the process lives. */
export const createAliveFile = (path: string, log: Log): AliveFile => {
  if (path === '') return nothing;
  let failing = false;
  return {
    say: async (ready) => {
      try {
        await writeFile(path, ready ? 'ready\n' : 'waiting\n');
        failing = false;
      } catch (error) {
        if (!failing) log.warn({ reason: describeError(error) }, 'HEARTBEAT_FILE is not written');
        failing = true;
      }
    },
    end: () => unlink(path).catch(() => undefined),
  };
};

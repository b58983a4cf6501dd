// When keys were last used: remembered in the process, written once a minute in one statement.
import type { Clock } from '../kernel/clock.ts';
import { minute } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { KeyStore } from './store.ts';

/** Keys per statement. */
const perStatement = 500;

export type KeyUses = {
  note(keyId: string): void;
  /** Writes what is remembered. */
  flush(): Promise<void>;
  start(): void;
  /** Writes what is remembered, and remembers no more. */
  stop(): Promise<void>;
};

/** A use is worth a minute's precision and no write of its own: a crash may lose the last minute's. */
export const createKeyUses = (deps: {
  keys: Pick<KeyStore, 'noteUses'>;
  clock: Clock;
  log: Log;
}): KeyUses => {
  const { keys, clock, log } = deps;
  let uses = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;

  const write = async (): Promise<void> => {
    const taken = [...uses].map(([id, at]) => ({ id, at }));
    uses = new Map();
    try {
      while (taken.length > 0) await keys.noteUses(taken.splice(0, perStatement));
    } catch (error) {
      log.warn({ reason: describeError(error) }, 'last uses of keys not written');
    }
  };

  return {
    note: (keyId) => uses.set(keyId, clock.now()),
    flush: write,
    start: () => {
      timer = setInterval(() => void write(), minute);
      timer.unref();
    },
    stop: async () => {
      clearInterval(timer);
      await write();
    },
  };
};

// Passwords: Argon2id off the event loop, never more at once than there are cores, and alike for unknown accounts.
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { fail } from '../kernel/errors.ts';

// OWASP Password Storage Cheat Sheet: 19 MiB, two passes, one lane.
const parameters = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 };
const prefix = '$argon2id$v=19$m=19456,t=2,p=1$';

/** Beyond this many the answer is 503: a queue that nobody waits out helps nobody. */
const waitingMax = 64;
const retrySeconds = 2;

export type PasswordCheck = {
  matches: boolean;
  /** The hash with today's parameters, when the stored one has others. */
  renewed: string | undefined;
};

export type Passwords = {
  /**
   * Runs the work around a hash if there will be room for it: a storm is turned away before it costs anything.
   * @throws SERVICE_UNAVAILABLE
   */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** @throws SERVICE_UNAVAILABLE when too many hashes wait already */
  hash(password: string): Promise<string>;
  /**
   * Compares with a stored hash; without one (nobody has that address) it takes as long and never matches.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait already
   */
  check(stored: string | undefined, password: string): Promise<PasswordCheck>;
};

const full = () => fail('SERVICE_UNAVAILABLE', { retry_after_seconds: retrySeconds });

/** Lets `atOnce` pieces of work run, and `waitingMax` wait. */
const createGate = (atOnce: number) => {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnce) {
      if (waiting.length >= waitingMax) throw full();
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    running++;
    try {
      return await work();
    } finally {
      running--;
      waiting.shift()?.();
    }
  };
};

// Half of the cores: sends go on beside a storm of logins, and the pool's threads are DNS' and files' too.
const atOnceDefault = (): number => Math.max(Math.floor(availableParallelism() / 2), 1);

/** The hashing of one process. */
export const createPasswords = (atOnce = atOnceDefault()): Passwords => {
  const gate = createGate(atOnce);
  let inside = 0;
  let decoy: Promise<string> | undefined;

  const hashPassword = (password: string) => gate(() => hash(password, parameters));

  return {
    enter: async (work) => {
      if (inside >= atOnce + waitingMax) throw full();
      inside++;
      try {
        return await work();
      } finally {
        inside--;
      }
    },
    hash: hashPassword,
    check: async (stored, password) => {
      decoy ??= hash('nobody has this password', parameters);
      const against = stored ?? (await decoy);
      const matches = (await gate(() => verify(against, password))) && stored !== undefined;
      const renew = matches && !against.startsWith(prefix);
      return { matches, renewed: renew ? await hashPassword(password) : undefined };
    },
  };
};

// Passwords: Argon2id on a thread that yields to everything else, bounded, and alike for unknown accounts.
import { Piscina } from 'piscina';
import { createLobby, type Lobby } from './lobby.ts';
import { hashPrefix } from './rules.ts';

/** Beyond this many the answer is 503: a queue that nobody waits out helps nobody. */
const waitingMax = 64;
// One is hashed while the next is looked up.
const loginsAtOnce = 2;
/** A core is not hashing for longer than half of the time: it has codes to send. */
const hashRest = 1;
const idleMs = 30_000;
// About a tenth of a contended core: 200 logins at once leave the time of a send as it was.
const niceness = 10;
// Loading what hashes takes nearly 12 MB of the heap, and a thread that finds no more ends with its task: twice that is
// a bound, not a use. Argon2's own memory is outside of it.
const heapMb = { maxOldGenerationSizeMb: 24, maxYoungGenerationSizeMb: 2 };

// No password's hash, in the form of one: comparing with it takes as long.
const decoy = `${hashPrefix}${'A'.repeat(22)}$${'A'.repeat(43)}`;

export type PasswordCheck = {
  matches: boolean;
  /** The hash with today's parameters, when the stored one has others. */
  renewed: string | undefined;
};

export type Passwords = {
  /**
   * Where logins wait, before anything is done for them, their body read least of all: what a storm costs is spread
   * over the time that its hashes take, and what there is no room for is turned away before it costs anything.
   */
  logins: Lobby;
  /** @throws SERVICE_UNAVAILABLE when too many hashes wait already */
  hash(password: string): Promise<string>;
  /**
   * Compares with a stored hash; without one (nobody has that address) it takes as long and never matches.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait already
   */
  check(stored: string | undefined, password: string): Promise<PasswordCheck>;
  /**
   * 32 bytes of Argon2id of each text under one salt, in order: as much work as that many passwords, in one place of
   * the queue.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait already
   */
  derive(texts: readonly string[], salt: Buffer): Promise<Buffer[]>;
  /** How much waits for its turn. */
  waiting(): number;
  /** Ends the thread; what waits for it is refused. */
  close(): Promise<void>;
};

/** The hashing of one process; the thread is there from the first hash until half a minute after the last. */
export const createPasswords = (): Passwords => {
  const thread = new Piscina<unknown, unknown>({
    filename: new URL('./hashing.ts', import.meta.url).href,
    ...{ minThreads: 0, maxThreads: 1, idleTimeout: idleMs, resourceLimits: heapMb },
    // Only Linux has a priority of its own for each thread.
    niceIncrement: process.platform === 'linux' ? niceness : 0,
  });
  const logins = createLobby(loginsAtOnce, waitingMax);
  const hashes = createLobby(1, waitingMax, { rest: hashRest });
  const run = <T>(name: 'hash' | 'verify' | 'derive', task: unknown) =>
    hashes.enter(() => thread.run(task, { name }) as Promise<T>);
  const hash = (password: string) => run<string>('hash', password);

  return {
    ...{ logins, hash },
    waiting: () => logins.waiting() + hashes.waiting(),
    check: async (stored, password) => {
      const against = stored ?? decoy;
      const right = await run<boolean>('verify', { against, password });
      const matches = right && stored !== undefined;
      const renew = matches && !against.startsWith(hashPrefix);
      return { matches, renewed: renew ? await hash(password) : undefined };
    },
    derive: async (texts, salt) =>
      (await run<Uint8Array[]>('derive', { texts, salt })).map((bytes) => Buffer.from(bytes)),
    close: () => thread.destroy(),
  };
};

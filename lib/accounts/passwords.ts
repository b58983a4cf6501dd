// Passwords: Argon2id in a process of its own, bounded, and alike for unknown accounts.
import { createHasher, type Hasher } from './hasher.ts';
import { createLobby, type Lobby } from './lobby.ts';
import { hashPrefix } from './rules.ts';

/** Beyond this many the answer is 503: a queue that nobody waits out helps nobody. */
const waitingMax = 64;
// One is hashed while the next is looked up.
const loginsAtOnce = 2;
// A hash takes about 20 ms of a core, so with this rest less than a third of one, and a login costs look-ups, limits and
// its answer besides. Sends keep the rest; 64 who wait are through in about five seconds.
const restMs = 50;

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
  /** @throws SERVICE_UNAVAILABLE when too many hashes wait already, or the process that hashes dies */
  hash(password: string): Promise<string>;
  /**
   * Compares with a stored hash; without one (nobody has that address) it takes as long and never matches.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait already, or the process that hashes dies
   */
  check(stored: string | undefined, password: string): Promise<PasswordCheck>;
  /**
   * 32 bytes of Argon2id of each text under one salt, in order: recovery codes of older sets are kept so. As much work
   * as that many passwords, in one place of the queue.
   * @throws SERVICE_UNAVAILABLE when too many hashes wait already, or the process that hashes dies
   */
  derive(texts: readonly string[], salt: Buffer): Promise<Buffer[]>;
  /** How much waits for its turn. */
  waiting(): number;
  /** Ends the process that hashes; what waits for it is refused. */
  close(): void;
};

/** The hashing of one process of ours. */
export const createPasswords = (hasher: Hasher = createHasher()): Passwords => {
  const logins = createLobby(loginsAtOnce, waitingMax);
  const hashes = createLobby(1, waitingMax, { restMs });
  const hash = (password: string) => hashes.enter(() => hasher.run('hash', password));

  return {
    ...{ logins, hash },
    waiting: () => logins.waiting() + hashes.waiting(),
    check: async (stored, password) => {
      const against = stored ?? decoy;
      const right = await hashes.enter(() => hasher.run('verify', { against, password }));
      const matches = right && stored !== undefined;
      const renew = matches && !against.startsWith(hashPrefix);
      return { matches, renewed: renew ? await hash(password) : undefined };
    },
    derive: async (texts, salt) => {
      const derived = await hashes.enter(() => hasher.run('derive', { texts, salt }));
      return derived.map((bytes) => Buffer.from(bytes));
    },
    close: () => hasher.close(),
  };
};

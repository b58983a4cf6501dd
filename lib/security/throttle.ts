// How often somebody may guess: passwords at login by e-mail and source, what a session proves by session, second
// factors by account. A source that the account knows has allowances of its own, which no other source can use up.
import type { RedisClient } from '../infra/redis.ts';
import type { Clock } from '../kernel/clock.ts';
import { day, hour, minute } from '../kernel/clock.ts';
import { ServiceError } from '../kernel/errors.ts';
import { sha256Hex } from '../kernel/secrets.ts';
import { networkOf } from '../kernel/source.ts';
import type { HumanCheck } from '../signup/human.ts';
import {
  type Count,
  type CounterRule,
  createCounter,
  giveBackAll,
  isRefusal,
  takeAll,
} from './counters.ts';
import { createStreaks } from './streaks.ts';

/** Failures in a row of one e-mail address from one source, then a wait that doubles each time. */
export const failuresMax = 10;
export const firstBlockMs = 15 * minute;
export const longestBlockMs = day;

const perPair = {
  name: 'login_pair',
  failures: failuresMax,
  firstWaitMs: firstBlockMs,
  longestWaitMs: longestBlockMs,
};
/** Failures from all sources that an account does not know. */
export const perEmail: CounterRule = { name: 'login_email', limit: 50, windowMs: day };
/** The same past that limit, each with a bot check that was passed. */
export const perEmailHuman: CounterRule = { name: 'login_human', limit: 150, windowMs: day };
export const perSource: CounterRule = { name: 'login_source', limit: 100, windowMs: day };
/** A wider network: the first 48 bits of an IPv6 address. */
export const perNetwork: CounterRule = { name: 'login_network', limit: 500, windowMs: day };
/** Guesses of one kind and one subject. */
export const guessesMax = 10;
export const guessesMs = hour;

/**
 * What is guessed: the password in an open session, a code of the authenticator app, a recovery code. Each kind is
 * counted, and forgiven, by itself.
 */
export type Guess = 'password' | 'code' | 'recovery';

/**
 * Who tries to log in. `source` is an opaque name of where the call comes from; `trusted`: the account with this
 * e-mail address knows it.
 */
export type Attempt = { email: string; source: string; trusted: boolean };

export type Throttle = {
  /**
   * Counts an attempt to log in, then lets `prove` look at the password. One that was never looked at (no room, an
   * engine away) is given back. A trusted source is counted by itself alone. Past the limit of all others `human`
   * decides: the bot check of this call, undefined where none is configured.
   * @throws RATE_LIMIT_EXCEEDED; RedisUnavailable, since no limit is skipped; whatever `human` and `prove` throw
   */
  attempting<T>(attempt: Attempt, human: HumanCheck, prove: () => Promise<T>): Promise<T>;
  /** The attempt succeeded: it counts nowhere, and the row of failures ends. Never throws: what it proved stands. */
  clear(attempt: Attempt): Promise<void>;
  /** The address has a new password: what was guessed at the old one keeps its owner out no longer. Never throws. */
  forget(attempt: Pick<Attempt, 'email' | 'source'>): Promise<void>;
  /**
   * Counts a guess of `subject` (guessSubject) and lets `prove` judge it. A right one ends the count of its kind.
   * @throws RATE_LIMIT_EXCEEDED, RedisUnavailable, whatever `prove` throws
   */
  guessing(kind: Guess, subject: string, prove: () => Promise<void>): Promise<void>;
};

/** Whose guesses count together. */
export const guessSubject = {
  /** Those made in one session. */
  ofSession: (sessionId: string): string => `session:${sessionId}`,
  /** Those made with any API key of an account: a key makes others at will. */
  ofKeys: (accountId: string): string => `keys:${accountId}`,
  /** Those of a login that waits for its second factor: of one trusted source, or of all others. */
  ofLogin: (accountId: string, { source, trusted }: Omit<Attempt, 'email'>): string =>
    trusted ? `login:${accountId}:${source}` : `login:${accountId}`,
};

const wrong = new Set(['INVALID_CREDENTIALS', 'INVALID_CODE']);

/** Whether an error says that what was guessed is wrong. */
export const isVerdict = (error: unknown): boolean =>
  error instanceof ServiceError && wrong.has(error.code);

const addressOf = (email: string) => sha256Hex(email).slice(0, 32);
const pairOf = ({ email, source }: Pick<Attempt, 'email' | 'source'>) =>
  sha256Hex(`${email}\n${source}`).slice(0, 32);

type Logins = Pick<Throttle, 'attempting' | 'clear' | 'forget'>;

const createLogins = (redis: RedisClient, prefix: string, clock: Clock): Logins => {
  const pairs = createStreaks(redis, prefix, perPair, clock);
  const counterOf = (rule: CounterRule) => createCounter(redis, prefix, rule, clock);
  const [sources, networks] = [counterOf(perSource), counterOf(perNetwork)];
  const [addresses, humans] = [counterOf(perEmail), counterOf(perEmailHuman)];

  /** The e-mail address, at the limit of all strangers or, past it, at that of those who passed the bot check. */
  const addressCount = (address: string, human: HumanCheck): Count => {
    let taken = addresses;
    return {
      take: async () => {
        try {
          await addresses.take(address);
        } catch (error) {
          if (human === undefined || !isRefusal(error)) throw error;
          await human();
          await humans.take(address);
          taken = humans;
        }
      },
      giveBack: () => taken.giveBack(address),
    };
  };

  const countsOf = (attempt: Attempt, human: HumanCheck): Count[] => {
    const { source } = attempt;
    const pair = pairOf(attempt);
    const network = networkOf(source);
    // Last: an attempt that is refused elsewhere is no failure of the pair.
    const last = { take: () => pairs.take(pair), giveBack: () => pairs.giveBack(pair) };
    if (attempt.trusted) return [last];
    return [
      { take: () => pairs.look(pair), giveBack: () => Promise.resolve() },
      { take: () => sources.take(source), giveBack: () => sources.giveBack(source) },
      { take: () => networks.take(network), giveBack: () => networks.giveBack(network) },
      addressCount(addressOf(attempt.email), human),
      last,
    ];
  };

  return {
    attempting: async (attempt, human, prove) => {
      const counts = countsOf(attempt, human);
      await takeAll(counts);
      try {
        return await prove();
      } catch (error) {
        if (!isVerdict(error)) await giveBackAll(counts);
        throw error;
      }
    },
    clear: async (attempt) => {
      const { email, source, trusted } = attempt;
      const taken: Promise<unknown>[] = trusted
        ? []
        : [
            sources.giveBack(source),
            networks.giveBack(networkOf(source)),
            addresses.giveBack(addressOf(email)),
          ];
      await Promise.allSettled([pairs.clear(pairOf(attempt)), ...taken]);
    },
    forget: async (attempt) => {
      const address = addressOf(attempt.email);
      const own = pairs.clear(pairOf(attempt));
      await Promise.allSettled([own, addresses.clear(address), humans.clear(address)]);
    },
  };
};

/** Counts over all processes, in Redis. */
export const createThrottle = (redis: RedisClient, prefix: string, clock: Clock): Throttle => {
  const logins = createLogins(redis, prefix, clock);
  const counterOf = (name: string) =>
    createCounter(redis, prefix, { name, limit: guessesMax, windowMs: guessesMs }, clock);
  const guesses = {
    password: counterOf('reauth_password'),
    code: counterOf('second_factor'),
    recovery: counterOf('recovery_code'),
  };
  return {
    ...logins,
    guessing: async (kind, subject, prove) => {
      const counter = guesses[kind];
      await counter.take(subject);
      try {
        await prove();
      } catch (error) {
        if (!isVerdict(error)) await counter.giveBack(subject).catch(() => undefined);
        throw error;
      }
      // What was proven stands, and may be used up by it.
      await counter.clear(subject).catch(() => undefined);
    },
  };
};

// Guesses at reset codes: failures in a row over all codes of an e-mail address, and the waits behind them.
import type { RedisClient } from '../infra/redis.ts';
import { type Clock, day, minute } from '../kernel/clock.ts';
import { isRefusal } from '../security/counters.ts';
import { createStreaks } from '../security/streaks.ts';
import { isVerdict } from '../security/throttle.ts';
import type { HumanCheck } from '../signup/human.ts';

/**
 * A new code does not begin the count anew. A row is forgotten two days after its last guess; whatever pauses they
 * make, strangers have 13 guesses a day: one chance in 20,000 a year for a code of eight digits, and as much again for
 * those who pass the bot check.
 */
export const resetStreak = {
  name: 'reset_guess',
  failures: 5,
  firstWaitMs: 15 * minute,
  longestWaitMs: day,
};

/** `name` is the opaque name of the e-mail address, `trusted` says that its account knows the source. */
export type ResetGuess = { name: string; source: string; trusted: boolean };

export type ResetGuesses = {
  /**
   * Counts a guess, then lets `prove` judge it; one that was never judged is given back, a right one ends the row.
   * Each trusted source counts by itself, all others together; past their limit those who pass `human` count apart.
   * @throws RATE_LIMIT_EXCEEDED, RedisUnavailable, whatever `human` and `prove` throw
   */
  guessing(guess: ResetGuess, human: HumanCheck, prove: () => Promise<void>): Promise<void>;
};

/** Counts over all processes, in Redis. */
export const createResetGuesses = (
  redis: RedisClient,
  prefix: string,
  clock: Clock,
): ResetGuesses => {
  const streaks = createStreaks(redis, prefix, resetStreak, clock);

  /** Counts the guess; answers where. */
  const take = async (guess: ResetGuess, human: HumanCheck): Promise<string> => {
    const { name, source, trusted } = guess;
    const subject = trusted ? `${name}:${source}` : name;
    try {
      await streaks.take(subject);
      return subject;
    } catch (error) {
      if (trusted || human === undefined || !isRefusal(error)) throw error;
      await human();
      await streaks.take(`human:${name}`);
      return `human:${name}`;
    }
  };

  return {
    guessing: async (guess, human, prove) => {
      const subject = await take(guess, human);
      try {
        await prove();
      } catch (error) {
        if (!isVerdict(error)) await streaks.giveBack(subject).catch(() => undefined);
        throw error;
      }
      // What was proven stands.
      await streaks.clear(subject).catch(() => undefined);
    },
  };
};

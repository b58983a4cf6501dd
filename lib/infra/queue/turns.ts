// Turns: how much of what a consumer has in hand is worked on at once, by size; the rest waits as it came, unread.

export type Turns = {
  /** Begins when it fits beside what is being worked on, at once or later, in order; one alone always fits. */
  take(bytes: number, begin: () => void): void;
  /** Work of that size has ended. */
  end(bytes: number): void;
  /** How much waits for its turn. */
  waiting(): number;
  /** Forgets what has not begun. */
  clear(): void;
};

/** Turns for work of `mostBytes` at once. */
export const createTurns = (mostBytes: number): Turns => {
  let waiting: { bytes: number; begin: () => void }[] = [];
  let taken = 0;

  const advance = (): void => {
    for (let [next] = waiting; next; [next] = waiting) {
      if (taken > 0 && taken + next.bytes > mostBytes) return;
      waiting.shift();
      taken += next.bytes;
      next.begin();
    }
  };

  return {
    take: (bytes, begin) => {
      waiting.push({ bytes, begin });
      advance();
    },
    end: (bytes) => {
      taken -= bytes;
      advance();
    },
    waiting: () => waiting.length,
    clear: () => {
      waiting = [];
    },
  };
};

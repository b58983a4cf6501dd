// Waiting for something no longer than it is worth.

/** What `work` resolves to; after `ms` what `late` makes is thrown instead, and what `work` does then is ignored. */
export const inTime = async <T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  return Promise.race([work, tooLate]).finally(() => clearTimeout(timer));
};

/** What `work` resolves to; null when it fails, or is not done after `ms`. */
export const inTimeOrNull = <T>(work: Promise<T>, ms: number): Promise<T | null> =>
  inTime(work, ms, () => new Error('no answer in time')).catch(() => null);

/** Resolves when `work` does or after `ms`, whichever comes first; rejects when `work` does by then. */
export const within = async (ms: number, work: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([work, patience]);
  } finally {
    clearTimeout(timer);
  }
};

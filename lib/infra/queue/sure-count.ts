// Counting what others may be holding in their hands for a moment.

/**
 * Counts by job. Fewer than at the last count are counted again after `beforeAgain`: another process may only have been
 * looking at them, and what it looks at is missing from the queue meanwhile.
 */
export const createSureCount = (beforeAgain: () => Promise<unknown>) => {
  const last = new Map<string, number>();
  return async (job: string, countOnce: () => Promise<number>): Promise<number> => {
    let count = await countOnce();
    if (count < (last.get(job) ?? 0)) {
      await beforeAgain();
      count = Math.max(count, await countOnce());
    }
    last.set(job, count);
    return count;
  };
};

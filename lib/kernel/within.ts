// Waiting for something, but not for ever.

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

// Holding a call of the product between its answer and whoever waits for it: the widest a race can be.

export type Held = {
  /** Resolves once the call has its answer. */
  reached: Promise<void>;
  /** Hands the answer over. */
  release(): void;
};

type Call = (...args: never[]) => Promise<unknown>;

/** Holds the next call of `name`; later ones pass. */
export const holdNext = <T extends object>(object: T, name: keyof T & string): Held => {
  const original = object[name] as Call;
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  object[name] = (async (...args: never[]) => {
    object[name] = original as T[typeof name];
    const answer = await original(...args);
    reached.resolve();
    await released.promise;
    return answer;
  }) as T[typeof name];
  return { reached: reached.promise, release: released.resolve };
};

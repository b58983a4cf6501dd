// What a process remembers of accounts: read once, and trusted for a while unless something about them is announced.
import type { Clock } from '../kernel/clock.ts';
import type { Revocations } from './revocations.ts';

export type Memory<V> = {
  /** What is remembered under the key and may still be trusted. */
  recall(key: string): { value: V } | undefined;
  /** What was remembered last, trusted or not: better than nothing while nobody can be asked. */
  last(key: string): { value: V } | undefined;
  /** Asks, and remembers the answer unless news came meanwhile that may be about it. */
  learn(key: string, ask: () => Promise<V>): Promise<V>;
};

export type MemoryOptions<V> = {
  revocations: Pick<Revocations, 'epoch' | 'news'>;
  clock: Clock;
  /** Which account an answer is about; undefined: everybody. */
  about(value: V, key: string): string | undefined;
  /** How long an answer holds, in ms; 0: it is not remembered. */
  keepMs(value: V): number;
  /** At so many entries the memory begins anew. */
  most: number;
};

export const createMemory = <V>(options: MemoryOptions<V>): Memory<V> => {
  const { revocations, clock, about, keepMs, most } = options;
  type Kept = { value: V; account: string | undefined; epoch: string; until: number };
  const kept = new Map<string, Kept>();

  const keep = (key: string, value: V): void => {
    const account = about(value, key);
    const epoch = revocations.epoch(account);
    const forMs = keepMs(value);
    if (epoch === undefined || forMs <= 0) return;
    if (kept.size >= most) kept.clear();
    kept.set(key, { value, account, epoch, until: clock.now() + forMs });
  };

  return {
    recall: (key) => {
      const found = kept.get(key);
      if (!found || found.until <= clock.now()) return undefined;
      return found.epoch === revocations.epoch(found.account) ? found : undefined;
    },
    last: (key) => kept.get(key),
    learn: async (key, ask) => {
      // Whom the answer is about is known only when it is there.
      const before = revocations.news();
      const value = await ask();
      if (revocations.news() === before) keep(key, value);
      return value;
    },
  };
};

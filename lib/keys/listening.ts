// What one process has heard of changes: counts that only go up, and until when they may be trusted.
import { everybody } from '../accounts/shards.ts';

/** After this long without news, what is remembered is no longer trusted: revocation holds within a second. */
const trustMs = 900;
/** More than can be announced between two looks at the slower witness; what is heard twice is only forgotten twice. */
const heardMax = 256;

/** A place that keeps the newest epoch of each shard. */
export type Witness = {
  read(): Promise<Map<number, string>>;
  write(shard: number, epoch: string): Promise<void>;
};

export type Listening = {
  /** Notes an epoch as news about its shard. */
  hear(shard: number, epoch: string): void;
  /** Looks at a witness; never throws. */
  ask(witness: Witness): Promise<void>;
  epoch(shard: number): string | undefined;
  news(): number;
};

/** `trusted` is the witness without which nothing is trusted for long; `monotonic` a clock in ms that never jumps. */
export const createListening = (trusted: Witness, monotonic: () => number): Listening => {
  // Epochs of late: one that comes by the other witness too is no news.
  const heard = new Set<string>();
  const seen = new Map<Witness, Map<number, string>>();
  const asking = new Set<Witness>();
  const counts = new Map<number, number>();
  let total = 0;
  let heardAt = Number.NEGATIVE_INFINITY;

  const isTrusted = (): boolean => monotonic() - heardAt <= trustMs;
  const countOf = (shard: number): number => counts.get(shard) ?? 0;

  const count = (shard: number): void => {
    counts.set(shard, countOf(shard) + 1);
    total++;
  };

  const hear: Listening['hear'] = (shard, epoch) => {
    heard.add(epoch);
    for (const oldest of heard) {
      if (heard.size <= heardMax) break;
      heard.delete(oldest);
    }
    count(shard);
  };

  const take = (witness: Witness, epochs: Map<number, string>, asked: number): void => {
    // What was remembered before a silence may have missed what was said in it.
    if (witness === trusted && !isTrusted()) count(everybody);
    const before = seen.get(witness);
    for (const [shard, epoch] of epochs) {
      if (before?.get(shard) !== epoch && !heard.has(epoch)) hear(shard, epoch);
    }
    seen.set(witness, epochs);
    // The age counts from the question: the answer may have been long on its way.
    if (witness === trusted) heardAt = asked;
  };

  return {
    hear,
    news: () => total,
    epoch: (shard) => {
      if (!isTrusted()) return undefined;
      return shard === everybody
        ? String(countOf(everybody))
        : `${countOf(everybody)}.${countOf(shard)}`;
    },
    /** One question at a time: a slow engine is not asked more often for being slow. */
    ask: async (witness) => {
      if (asking.has(witness)) return;
      asking.add(witness);
      const asked = monotonic();
      try {
        take(witness, await witness.read(), asked);
      } catch {
        // The next round asks again; without Redis trust runs out by itself.
      } finally {
        asking.delete(witness);
      }
    },
  };
};

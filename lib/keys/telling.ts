// What one process has to say of changes, and what it still owes to whoever could not be told.
import { randomUUID } from 'node:crypto';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Witness } from './listening.ts';

export type Telling = {
  /** Tells a witness; what it cannot take is owed. Never throws. */
  say(witness: Witness, shard: number, epoch: string): Promise<void>;
  /** Says again what is owed. */
  repeat(): void;
};

export const createTelling = (log: Log, nameOf: (witness: Witness) => string): Telling => {
  const owed = new Map<Witness, Set<number>>();
  const failing = new Set<Witness>();

  const owe = (witness: Witness, shard: number): void => {
    owed.set(witness, (owed.get(witness) ?? new Set<number>()).add(shard));
  };

  const say: Telling['say'] = async (witness, shard, epoch) => {
    // Not owed while it is being said, so that it is said once at a time.
    owed.get(witness)?.delete(shard);
    try {
      await witness.write(shard, epoch);
      failing.delete(witness);
    } catch (error) {
      owe(witness, shard);
      if (failing.has(witness)) return;
      failing.add(witness);
      const fields = { engine: nameOf(witness), reason: describeError(error) };
      log.warn(fields, 'revocation not announced yet');
    }
  };

  return {
    say,
    repeat: () => {
      for (const [witness, shards] of owed) {
        for (const shard of [...shards]) void say(witness, shard, randomUUID());
      }
    },
  };
};

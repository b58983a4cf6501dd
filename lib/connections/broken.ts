// Own numbers that turn out not to work when something is sent with them.
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Revocations } from '../keys/revocations.ts';
import { brokenReasonOf } from './rules.ts';
import type { ConnectionStore } from './store.ts';

/** `code` is the provider's number of a refusal of class broken. */
export type NoteRefusal = (connectionId: string, code: number) => void;

/**
 * Marks connections broken whose provider refuses them for good. Sends do not wait for it; one that is being marked
 * is not marked again, and all processes hear of it.
 */
export const createNoteRefusal = (deps: {
  connections: Pick<ConnectionStore, 'markBroken'>;
  revocations: Pick<Revocations, 'announce'>;
  clock: Clock;
  log: Log;
}): NoteRefusal => {
  const { connections, revocations, clock, log } = deps;
  const marking = new Set<string>();

  const mark = async (connectionId: string, code: number): Promise<void> => {
    const reason = brokenReasonOf(code);
    if (reason === undefined || marking.has(connectionId)) return;
    marking.add(connectionId);
    try {
      const accountId = await connections.markBroken(connectionId, reason, clock.now());
      if (accountId === undefined) return;
      log.warn({ connection: connectionId, reason, provider_code: code }, 'connection broke');
      await revocations.announce(accountId);
    } finally {
      marking.delete(connectionId);
    }
  };

  return (connectionId, code) => {
    // The next send that is refused tries again.
    mark(connectionId, code).catch((error: unknown) =>
      log.warn({ connection: connectionId, reason: describeError(error) }, 'connection not marked'),
    );
  };
};

// What a worker does on the clock: messages whose time has come become jobs, and old Idempotency-Keys go.
import type { Reservations } from '../idempotency/reservations.ts';
import type { Broker } from '../infra/queue/broker.ts';
import { whatsappStatus } from '../jobs.ts';
import { type Chore, repeat } from '../kernel/chore.ts';
import { type Clock, minute, second } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { MessageStore } from '../messages/store.ts';

const leaseMs = minute;
const batch = 200;
const purgeBatch = 1_000;

/**
 * Once a second, turns messages whose time has come into jobs. A message is leased for a minute, so that neither a
 * second sweeper nor the next round takes it again; the job, not the sweep, changes anything.
 */
export const createSweeper = (deps: {
  messages: MessageStore;
  broker: Pick<Broker, 'publish'>;
  clock: Clock;
  log: Log;
}): Chore => {
  const sweep = async (): Promise<void> => {
    const due = await deps.messages.takeDue(deps.clock.now(), leaseMs, batch);
    if (due.length === 0) return;
    await deps.broker.publish(whatsappStatus, { receipts: [], due }, { messageId: newId() });
    if (due.length === batch) await sweep();
  };
  return repeat(sweep, second, deps.log);
};

/** Once a minute, forgets Idempotency-Keys past their day, in pieces that hold no lock for long. */
export const createKeyPurge = (deps: {
  reservations: Reservations;
  clock: Clock;
  log: Log;
}): Chore => {
  const purge = async (): Promise<void> => {
    const gone = await deps.reservations.purge(deps.clock.now(), purgeBatch);
    if (gone === purgeBatch) await purge();
  };
  return repeat(purge, minute, deps.log);
};

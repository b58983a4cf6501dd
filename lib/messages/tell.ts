// Telling of what stands already: an event that the broker does not take undoes nothing.
import type { EventWire } from '../jobs.ts';
import type { Log } from '../kernel/log.ts';
import { describeError } from '../kernel/redact.ts';
import type { Announcer } from './announce.ts';

/** Announces an event after the commit of what it tells; never throws, a failure is logged. */
export const tell = async (
  { announcer, log }: { announcer: Pick<Announcer, 'announce'>; log: Log },
  event: EventWire,
): Promise<void> => {
  try {
    await announcer.announce(event);
  } catch (error) {
    const fields = { type: event.type, account_id: event.account_id, reason: describeError(error) };
    log.warn(fields, 'done, not announced');
  }
};

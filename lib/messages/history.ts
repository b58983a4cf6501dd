// The history of messages: every event, once, in MySQL.
import { type Database, withLockRetry } from '../infra/mysql.ts';
import { isOutage } from '../infra/outages.ts';
import type { EventWire } from '../jobs.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { idBytes } from '../kernel/ids.ts';

const insert = `INSERT IGNORE INTO message_events
  (message_id, event_id, account_id, type, at, request_id, data) VALUES ?`;

const toValues = (event: EventWire, messageId: string): unknown[] => [
  idBytes(messageId),
  Buffer.from(event.id, 'hex'),
  idBytes(event.account_id),
  event.type,
  event.at,
  event.request_id,
  JSON.stringify(event.data),
];

export type History = { record(events: EventWire[]): Promise<void> };

/** Keeps events of messages; one that comes again is recognised by its id. */
export const createHistory = (db: Database): History => {
  const grouped = createGrouper<unknown[][], undefined>({
    maxSize: 50,
    maxWaitMs: 20,
    blamesOne: (error) => !isOutage(error),
    run: async (groups) => {
      await withLockRetry(() => db.raw(insert, [groups.flat() as unknown as string]));
      return [];
    },
  });
  return {
    record: async (events) => {
      const rows = events.flatMap((event) =>
        event.message ? [toValues(event, event.message.id)] : [],
      );
      if (rows.length > 0) await grouped.add(rows);
    },
  };
};

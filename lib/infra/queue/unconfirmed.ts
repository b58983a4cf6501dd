// Messages the broker has not confirmed yet: each is settled once, by its confirm, its return or its deadline.
import type { Message } from 'amqplib';
import { OutcomeUnknown, QueueFull, Unroutable } from './errors.ts';

type Opened = {
  messageId: string;
  /** Routing key of a message that must reach a queue; undefined for others. */
  mandatoryKey: string | undefined;
  resolve(): void;
  reject(error: Error): void;
};

export type Waiting = Opened & {
  /** By the monotonic clock of the process. */
  deadline: number;
  returned: boolean;
  overdue: boolean;
};

export type PublishCounts = {
  published: number;
  returned: number;
  nacked: number;
  unknown: number;
};

export type Unconfirmed = {
  /** Messages the broker still owes a word about, those nobody waits for any longer included. */
  size(): number;
  /** Messages somebody waits for. */
  awaited(): number;
  open(entry: Opened): Waiting;
  /** Settles an entry by the broker's word: an ack, or the error amqplib makes of a nack or a lost channel. */
  settle(entry: Waiting, error: unknown): void;
  /** Forgets an entry that was never sent. */
  drop(entry: Waiting): void;
  /** Notes a message that no queue takes. */
  returned(message: Message): void;
  failAll(): void;
  /** Ends the wait for entries whose deadline is at or before `now` (monotonic milliseconds). */
  failOverdue(now: number): void;
  counts: PublishCounts;
};

/** The error that amqplib reports for a nack; all its others are about the channel. */
const isNack = (error: unknown): boolean =>
  error instanceof Error && error.message === 'message nacked';

const lostLine = 'the connection was lost before the broker confirmed';

/** The entries that can be returned; a job that was delivered twice may be published twice at the same time. */
const createReturnable = () => {
  const byId = new Map<string, Waiting[]>();
  return {
    add: (entry: Waiting): void => {
      const same = byId.get(entry.messageId);
      if (same) same.push(entry);
      else byId.set(entry.messageId, [entry]);
    },
    remove: (entry: Waiting): void => {
      const same = byId.get(entry.messageId) ?? [];
      if (same.length > 1) same.splice(same.indexOf(entry), 1);
      else byId.delete(entry.messageId);
    },
    mark: ({ properties, fields }: Message): void => {
      for (const entry of byId.get(String(properties.messageId)) ?? []) {
        if (entry.mandatoryKey === fields.routingKey) entry.returned = true;
      }
    },
  };
};

/** Entries that are waited for at most `timeoutMs` each. */
export const createUnconfirmed = (timeoutMs: number): Unconfirmed => {
  const counts: PublishCounts = { published: 0, returned: 0, nacked: 0, unknown: 0 };
  // In order of their deadlines, because all wait equally long.
  const waiting = new Set<Waiting>();
  const returnable = createReturnable();
  let overdue = 0;

  const take = (entry: Waiting): void => {
    waiting.delete(entry);
    if (entry.mandatoryKey !== undefined) returnable.remove(entry);
  };

  const unknown = (entry: Waiting, reason: string): void => {
    take(entry);
    counts.unknown++;
    entry.reject(new OutcomeUnknown(reason));
  };

  const settle = (entry: Waiting, error: unknown): void => {
    if (!waiting.has(entry)) {
      // Nobody waits any longer, but the broker owes one word less.
      if (entry.overdue && overdue > 0) overdue--;
      entry.overdue = false;
      return;
    }
    if (error && !isNack(error)) {
      unknown(entry, lostLine);
      return;
    }
    take(entry);
    if (error) {
      counts.nacked++;
      entry.reject(new QueueFull('the queue is full'));
    } else if (entry.returned) entry.reject(new Unroutable('no queue takes the message'));
    else {
      counts.published++;
      entry.resolve();
    }
  };

  const open = (opened: Opened): Waiting => {
    const entry: Waiting = {
      ...opened,
      deadline: performance.now() + timeoutMs,
      returned: false,
      overdue: false,
    };
    waiting.add(entry);
    if (opened.mandatoryKey !== undefined) returnable.add(entry);
    return entry;
  };

  return {
    ...{ counts, settle, open },
    size: () => waiting.size + overdue,
    awaited: () => waiting.size,
    drop: (entry) => {
      take(entry);
    },
    // The broker returns a message before it acks it, so the entry is still open.
    returned: (message) => {
      counts.returned++;
      returnable.mark(message);
    },
    failAll: () => {
      for (const entry of waiting) unknown(entry, lostLine);
      overdue = 0;
    },
    failOverdue: (now) => {
      for (const entry of waiting) {
        if (entry.deadline > now) break;
        entry.overdue = true;
        overdue++;
        unknown(entry, 'the broker did not confirm in time');
      }
    },
  };
};

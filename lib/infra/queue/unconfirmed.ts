// Messages the broker has not confirmed yet: each is settled once, by its confirm, its return or its deadline.
import type { Message } from 'amqplib';
import { OutcomeUnknown, QueueFull, Unroutable } from './errors.ts';

type Waiting = {
  messageId: string;
  deadline: number;
  returned: boolean;
  resolve(): void;
  reject(error: Error): void;
};

export type PublishCounts = {
  published: number;
  returned: number;
  nacked: number;
  unknown: number;
};

export type Unconfirmed = {
  size(): number;
  /** Opens an entry; `mandatory` ones can be returned. Answers the tag it is settled by. */
  open(entry: Pick<Waiting, 'messageId' | 'resolve' | 'reject'> & { mandatory: boolean }): number;
  /** Settles an entry by the broker's word: an ack, or the error amqplib makes of a nack or a lost channel. */
  settle(tag: number, error: unknown): void;
  /** Forgets an entry that was never sent. */
  drop(tag: number): void;
  /** Notes a returned message; answers false when it is none of ours. */
  returned(message: Message): boolean;
  failAll(reason: string): void;
  failOverdue(now: number): void;
  counts: PublishCounts;
};

/** The error that amqplib reports for a nack; all its others are about the channel. */
const isNack = (error: unknown): boolean =>
  error instanceof Error && error.message === 'message nacked';

/** Entries that take at most `timeoutMs` each. */
export const createUnconfirmed = (timeoutMs: number): Unconfirmed => {
  const counts: PublishCounts = { published: 0, returned: 0, nacked: 0, unknown: 0 };
  const waiting = new Map<number, Waiting>();
  const byId = new Map<string, Waiting>();
  let next = 0;

  const take = (tag: number): Waiting | undefined => {
    const entry = waiting.get(tag);
    waiting.delete(tag);
    if (entry && byId.get(entry.messageId) === entry) byId.delete(entry.messageId);
    return entry;
  };

  const unknown = (tag: number, reason: string): void => {
    counts.unknown++;
    take(tag)?.reject(new OutcomeUnknown(reason));
  };

  const settle = (tag: number, error: unknown): void => {
    if (error && !isNack(error)) {
      unknown(tag, 'the connection was lost before the broker confirmed');
      return;
    }
    const entry = take(tag);
    if (error) {
      counts.nacked++;
      entry?.reject(new QueueFull('the queue is full'));
    } else if (entry?.returned) entry.reject(new Unroutable('no queue takes the message'));
    else {
      counts.published++;
      entry?.resolve();
    }
  };

  return {
    counts,
    settle,
    size: () => waiting.size,
    open: ({ messageId, mandatory, resolve, reject }) => {
      const tag = next++;
      const entry = {
        ...{ messageId, resolve, reject },
        returned: false,
        deadline: Date.now() + timeoutMs,
      };
      waiting.set(tag, entry);
      if (mandatory) byId.set(messageId, entry);
      return tag;
    },
    drop: (tag) => {
      take(tag);
    },
    // The broker returns a message before it acks it, so the entry is still open.
    returned: ({ properties }) => {
      counts.returned++;
      const entry = byId.get(String(properties.messageId));
      if (entry) entry.returned = true;
      return entry !== undefined;
    },
    failAll: (reason) => {
      for (const tag of [...waiting.keys()]) unknown(tag, reason);
    },
    failOverdue: (now) => {
      for (const [tag, { deadline }] of waiting) {
        if (deadline > now) break;
        unknown(tag, 'the broker did not confirm in time');
      }
    },
  };
};

// Acknowledging in groups: once per turn of the event loop, one multiple ack for the finished prefix.
import type { Channel, ConsumeMessage } from 'amqplib';

export type Acks = {
  delivered(tag: number): void;
  finished(tag: number): void;
  /** The delivery is settled in another way. */
  forget(tag: number): void;
  /** From now on only prefixes are acknowledged, until `flush`. */
  hold(): void;
  /** Acknowledges everything that is finished. */
  flush(): void;
  /** Deliveries that are neither acknowledged nor forgotten. */
  inHand(): number;
};

// amqplib reads nothing of a message but its tag.
const messageOf = (deliveryTag: number) => ({ fields: { deliveryTag } }) as ConsumeMessage;

/** Acks over one channel; tags finish in any order, and nothing unfinished is ever acknowledged. */
export const createAcks = (channel: Pick<Channel, 'ack'>): Acks => {
  // In order of arrival, which is the order of the tags; true for finished ones.
  const open = new Map<number, boolean>();
  let finished = 0;
  let scheduled = false;
  let holding = false;

  const ack = (tag: number, allUpTo: boolean): void => {
    try {
      channel.ack(messageOf(tag), allUpTo);
    } catch {
      // The channel is gone: the broker delivers again, and the handlers know what they have done.
      open.clear();
      finished = 0;
    }
  };

  const take = (tag: number): void => {
    if (open.get(tag)) finished--;
    open.delete(tag);
  };

  const ackPrefix = (): void => {
    let prefix: number | undefined;
    for (const [tag, isFinished] of open) {
      if (!isFinished) break;
      prefix = tag;
      take(tag);
    }
    if (prefix !== undefined) ack(prefix, true);
  };

  const flush = (): void => {
    ackPrefix();
    for (const [tag, isFinished] of open) {
      if (finished === 0) break;
      if (!isFinished) continue;
      take(tag);
      ack(tag, false);
    }
  };

  const onTurn = (): void => {
    scheduled = false;
    if (holding) ackPrefix();
    else flush();
  };

  return {
    delivered: (tag) => {
      open.set(tag, false);
    },
    finished: (tag) => {
      if (open.get(tag) !== false) return;
      open.set(tag, true);
      finished++;
      if (scheduled) return;
      scheduled = true;
      setImmediate(onTurn);
    },
    forget: take,
    hold: () => {
      holding = true;
    },
    flush,
    inHand: () => open.size,
  };
};

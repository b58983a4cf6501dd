// Acknowledging in groups: once per turn of the event loop, one multiple ack for the finished prefix.
type AckChannel = { ack(message: { fields: { deliveryTag: number } }, allUpTo?: boolean): void };

export type Acks = {
  delivered(tag: number): void;
  finished(tag: number): void;
  /** The delivery is settled in another way. */
  forget(tag: number): void;
  flush(): void;
};

const messageOf = (deliveryTag: number) => ({ fields: { deliveryTag } });

/** Acks over one channel; tags finish in any order, and nothing unfinished is ever acknowledged. */
export const createAcks = (channel: AckChannel): Acks => {
  // Delivery tags of a channel rise by one, so the unfinished ones in order of arrival are a queue.
  const open = new Map<number, boolean>();
  let scheduled = false;

  const ack = (tag: number, allUpTo: boolean): void => {
    try {
      channel.ack(messageOf(tag), allUpTo);
    } catch {
      // The channel is gone: the broker delivers again, and the handlers know what they have done.
      open.clear();
    }
  };

  const flush = (): void => {
    scheduled = false;
    let prefix: number | undefined;
    for (const [tag, finished] of open) {
      if (!finished) break;
      prefix = tag;
      open.delete(tag);
    }
    if (prefix !== undefined) ack(prefix, true);
    for (const [tag, finished] of open) {
      if (!finished) continue;
      open.delete(tag);
      ack(tag, false);
    }
  };

  return {
    delivered: (tag) => {
      open.set(tag, false);
    },
    finished: (tag) => {
      if (!open.has(tag)) return;
      open.set(tag, true);
      if (scheduled) return;
      scheduled = true;
      setImmediate(flush);
    },
    forget: (tag) => {
      open.delete(tag);
    },
    flush,
  };
};

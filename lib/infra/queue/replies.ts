// Answers to what this process asked: an exclusive queue of its own, and boxes that wait for one correlation id.
import type { ChannelModel, ConsumeMessage } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { readAnswers } from './answers.ts';
import type { Guard } from './guard.ts';

export type ReplyBox = {
  /** The next reply, or undefined when none came in `timeoutMs`; one call at a time. */
  next(timeoutMs: number): Promise<unknown>;
  /** Ends the wait; later replies are ignored. */
  close(): void;
};

export type Replies = {
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
  address(): string | undefined;
  expect(correlationId: string): ReplyBox;
};

type Box = { arrived: unknown[]; wake: (() => void) | undefined };

const next = (box: Box, timeoutMs: number): Promise<unknown> =>
  new Promise((resolve) => {
    if (box.arrived.length > 0) {
      resolve(box.arrived.shift());
      return;
    }
    const finish = (): void => {
      clearTimeout(timer);
      box.wake = undefined;
      resolve(box.arrived.shift());
    };
    const timer = setTimeout(finish, timeoutMs);
    box.wake = finish;
  });

/** The reply queue of a process; boxes outlive a lost connection, the queue and its name do not. */
export const createReplies = (guard: Guard, log: Log): Replies => {
  const boxes = new Map<string, Box>();
  let queue: string | undefined;

  const onReply = ({ content }: ConsumeMessage): void => {
    for (const { correlationId, body } of readAnswers(content, log)) {
      const box = boxes.get(correlationId);
      box?.arrived.push(body);
      box?.wake?.();
    }
  };

  return {
    attach: async (model) => {
      const channel = await model.createChannel();
      guard(model, channel, 'replies');
      // Named by the server: a name of ours would stay locked while an old connection lingers.
      const asserted = await channel.assertQueue('', {
        exclusive: true,
        durable: false,
        autoDelete: true,
      });
      const onMessage = (message: ConsumeMessage | null): void => {
        if (message) onReply(message);
        // The queue was deleted: the end of the channel leads to a new one.
        else channel.close().catch(() => undefined);
      };
      await channel.consume(asserted.queue, onMessage, { noAck: true });
      queue = asserted.queue;
    },
    detach: () => {
      queue = undefined;
    },
    address: () => queue,
    expect: (correlationId) => {
      const box: Box = { arrived: [], wake: undefined };
      boxes.set(correlationId, box);
      return {
        next: (timeoutMs) => next(box, timeoutMs),
        close: () => {
          if (boxes.get(correlationId) === box) boxes.delete(correlationId);
          box.wake?.();
        },
      };
    },
  };
};

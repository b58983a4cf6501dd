// Answers to what this process asked: an exclusive queue of its own, and boxes that wait for one correlation id.
import type { ChannelModel, ConsumeMessage } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { guardChannel } from './connection.ts';

export type ReplyBox = {
  /** The next reply, or undefined when none came in `timeoutMs`. */
  next(timeoutMs: number): Promise<unknown>;
  close(): void;
};

export type Replies = {
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
  address(): string | undefined;
  expect(correlationId: string): ReplyBox;
};

type Box = { arrived: unknown[]; wake: (() => void) | undefined };

export const createReplies = (log: Log): Replies => {
  const boxes = new Map<string, Box>();
  let queue: string | undefined;

  const onReply = (message: ConsumeMessage | null): void => {
    const box = message && boxes.get(String(message.properties.correlationId));
    if (!message || !box) return;
    box.arrived.push(JSON.parse(message.content.toString('utf8')));
    box.wake?.();
  };

  const next = (box: Box, timeoutMs: number): Promise<unknown> =>
    new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        box.wake = undefined;
        resolve(box.arrived.shift());
      };
      const timer = setTimeout(finish, timeoutMs);
      box.wake = finish;
      if (box.arrived.length > 0) finish();
    });

  return {
    attach: async (model) => {
      const channel = await model.createChannel();
      guardChannel(model, channel, log);
      const asserted = await channel.assertQueue('', {
        exclusive: true,
        durable: false,
        autoDelete: true,
      });
      await channel.consume(asserted.queue, onReply, { noAck: true });
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
        },
      };
    },
  };
};

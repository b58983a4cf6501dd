// The consuming connection: this process's replies, its consumers, and looks at the depth of queues.
import type { ChannelModel } from 'amqplib';
import type { Job } from '../../jobs.ts';
import type { Log } from '../../kernel/log.ts';
import { createConnection } from './connection.ts';
import {
  type AttachableConsumer,
  type Consumer,
  type ConsumerDeps,
  createConsumer,
} from './consumer.ts';
import { declare } from './declare.ts';
import { BrokerUnavailable } from './errors.ts';
import type { Handler } from './message.ts';
import { createReplies, type Replies } from './replies.ts';

export type Receiving = {
  replies: Replies;
  start(): Promise<void>;
  connected(): boolean;
  consume<P>(job: Job<P>, handle: Handler<P>, prefetch: number): Promise<Consumer>;
  depth(queue: string): Promise<{ ready: number; consumers: number }>;
  close(): Promise<void>;
};

export type ReceivingOptions = {
  urls: readonly string[];
  name: string;
  jobs: readonly Job[];
  log: Log;
  consumers: ConsumerDeps;
  onChange(): void;
};

/** Keeps the consuming side alive: every new connection gets the reply queue and all consumers again. */
export const createReceiving = (options: ReceivingOptions): Receiving => {
  const { urls, name, jobs, log, onChange } = options;
  const consumers = new Set<AttachableConsumer>();
  const replies = createReplies(log);
  let current: ChannelModel | undefined;

  const connection = createConnection({
    ...{ urls, name, log },
    setup: async (model) => {
      await declare(model, jobs);
      await replies.attach(model);
      for (const consumer of consumers) await consumer.attach(model);
      current = model;
      onChange();
    },
    lost: () => {
      current = undefined;
      replies.detach();
      for (const consumer of consumers) consumer.detach();
      onChange();
    },
  });

  return {
    replies,
    start: connection.start,
    connected: () => current !== undefined,
    consume: async (job, handle, prefetch) => {
      const consumer = createConsumer(options.consumers, job, handle, prefetch);
      consumers.add(consumer);
      if (current) await consumer.attach(current);
      return {
        stop: async () => {
          await consumer.stop();
          consumers.delete(consumer);
        },
      };
    },
    depth: async (queue) => {
      if (!current) throw new BrokerUnavailable('the broker is not connected');
      // A queue that is missing closes the channel that asked: never one that works.
      const channel = await current.createChannel();
      channel.on('error', () => undefined);
      const { messageCount, consumerCount } = await channel.checkQueue(queue);
      await channel.close();
      return { ready: messageCount, consumers: consumerCount };
    },
    close: connection.close,
  };
};

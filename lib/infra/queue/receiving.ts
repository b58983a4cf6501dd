// The consuming connection: this process's replies, its consumers, and looks at the depth of queues.
import type { ChannelModel } from 'amqplib';
import type { Job } from '../../jobs.ts';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';
import { createConnection } from './connection.ts';
import {
  type AttachableConsumer,
  type Consumer,
  type ConsumerDeps,
  createConsumer,
} from './consumer.ts';
import { BrokerUnavailable } from './errors.ts';
import type { Handler } from './message.ts';
import { createReplies, type Replies } from './replies.ts';

export type Receiving = {
  replies: Replies;
  start(): Promise<void>;
  connected(): boolean;
  consume<P>(job: Job<P>, handle: Handler<P>, prefetch: number): Promise<Consumer>;
  depth(queue: string): Promise<{ ready: number; consumers: number }>;
  /** Jobs in hand by job, for every job that is consumed here. */
  inHand(): Record<string, number>;
  /** Stops all consumers, then the connection. */
  close(): Promise<void>;
};

export type ReceivingOptions = {
  urls: readonly string[];
  name: string;
  log: Log;
  consumers: ConsumerDeps;
  onChange(): void;
  onReconnect(): void;
};

/** Ready messages and consumers of a queue; asked on a channel of its own, which a missing queue closes. */
const depthOf = async (model: ChannelModel | undefined, queue: string) => {
  if (!model) throw new BrokerUnavailable('the broker is not connected');
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  const { messageCount, consumerCount } = await channel.checkQueue(queue);
  await channel.close();
  return { ready: messageCount, consumers: consumerCount };
};

/** Keeps the consuming side alive: every new connection gets the reply queue and all consumers again. */
export const createReceiving = (options: ReceivingOptions): Receiving => {
  const { urls, name, log, onChange, onReconnect } = options;
  const { guard, redeclare } = options.consumers;
  const consumers = new Set<AttachableConsumer>();
  const replies = createReplies(guard, log);
  let current: ChannelModel | undefined;

  const connection = createConnection({
    ...{ urls, name, log, onReconnect },
    setup: async (model) => {
      await redeclare(model);
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

  const consume: Receiving['consume'] = async (job, handle, prefetch) => {
    const consumer = createConsumer(options.consumers, job, handle, prefetch);
    consumers.add(consumer);
    // A connection that ends meanwhile is followed by one that gets this consumer too.
    await (current && consumer.attach(current))?.catch((error: unknown) =>
      log.warn({ job: job.name, reason: describeError(error) }, 'consumer not attached yet'),
    );
    return {
      stop: async () => {
        await consumer.stop();
        consumers.delete(consumer);
      },
    };
  };

  return {
    ...{ replies, consume },
    start: connection.start,
    connected: () => current !== undefined,
    depth: (queue) => depthOf(current, queue),
    inHand: () =>
      Object.fromEntries([...consumers].map((consumer) => [consumer.job, consumer.inHand()])),
    close: async () => {
      await Promise.all([...consumers].map((consumer) => consumer.stop()));
      await connection.close();
    },
  };
};

// The consuming connection: this process's replies, its consumers, and looks at the depth of queues.
import type { Channel, ChannelModel } from 'amqplib';
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
  look<T>(work: (channel: Channel) => Promise<T>): Promise<T>;
  /** Jobs that were settled here since the start, by job. */
  handled(): Record<string, number>;
  /** Jobs in hand by job, for every job that is consumed here. */
  inHand(): Record<string, number>;
  /** Stops all consumers, then the connection. */
  close(): Promise<void>;
};

export type ReceivingOptions = {
  urls: readonly string[];
  name: string;
  log: Log;
  /** Puts the topology on a new connection's broker. */
  declare(model: ChannelModel): Promise<void>;
  consumers: ConsumerDeps;
  onChange(): void;
  onReconnect(): void;
};

/** Work on a channel of its own, which a mistake may close: what it holds then goes back to its queue. */
const lookOn = async <T>(
  model: ChannelModel | undefined,
  work: (channel: Channel) => Promise<T>,
): Promise<T> => {
  if (!model) throw new BrokerUnavailable('the broker is not connected');
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  try {
    return await work(channel);
  } finally {
    await channel.close().catch(() => undefined);
  }
};

const depthOf = (model: ChannelModel | undefined, queue: string) =>
  lookOn(model, async (channel) => {
    const { messageCount, consumerCount } = await channel.checkQueue(queue);
    return { ready: messageCount, consumers: consumerCount };
  });

/** Keeps the consuming side alive: every new connection gets the reply queue and all consumers again. */
export const createReceiving = (options: ReceivingOptions): Receiving => {
  const { urls, name, log, onChange, onReconnect, declare } = options;
  const consumers = new Set<AttachableConsumer>();
  const handled: Record<string, number> = {};
  const replies = createReplies(options.consumers.guard, log);
  let current: ChannelModel | undefined;

  const connection = createConnection({
    ...{ urls, name, log, onReconnect },
    setup: async (model) => {
      await declare(model);
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
    handled[job.name] ??= 0;
    const onHandled: ConsumerDeps['onHandled'] = (done) => {
      handled[job.name] = (handled[job.name] ?? 0) + 1;
      options.consumers.onHandled(done);
    };
    const consumer = createConsumer({ ...options.consumers, onHandled }, job, handle, prefetch);
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
    look: (work) => lookOn(current, work),
    handled: () => handled,
    inHand: () =>
      Object.fromEntries([...consumers].map((consumer) => [consumer.job, consumer.inHand()])),
    close: async () => {
      await Promise.all([...consumers].map((consumer) => consumer.stop()));
      await connection.close();
    },
  };
};

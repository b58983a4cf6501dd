// The broker as the rest of the house sees it: publish, emit, ask, answer, consume.
import type { ChannelModel } from 'amqplib';
import type { Job } from '../../jobs.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import { createConnection } from './connection.ts';
import { type AttachableConsumer, type Consumer, createConsumer } from './consumer.ts';
import { freshProperties, type Handler, type PublishOptions } from './message.ts';
import { createPublisher } from './publisher.ts';
import { createReplies, type ReplyBox } from './replies.ts';
import { exchanges, topologyOf } from './topology.ts';

export type BrokerOptions = {
  /** Several addresses are tried in turn. */
  urls: readonly string[];
  processName: string;
  jobs: readonly Job[];
  log: Log;
  clock: Clock;
  /** How long the broker may take to confirm; default 10 s. */
  publishTimeoutMs?: number;
};

export type ReplyAddress = { replyTo: string; correlationId: string };

export type Broker = {
  /** Resolves when the broker is connected and its topology stands; keeps trying for ever. */
  start(): Promise<void>;
  /** Whether a publish would be tried now. */
  ready(): boolean;
  /**
   * Puts a job into its fresh queue; resolves when the broker has confirmed it.
   * @throws BrokerUnavailable, QueueFull, Unroutable (nothing was queued), OutcomeUnknown
   */
  publish<P>(job: Job<P>, payload: P, options: PublishOptions): Promise<void>;
  /** Publishes to the exchange of events; nobody need be bound. Throws like publish. */
  emit(type: string, body: unknown, options: PublishOptions): Promise<void>;
  /** Where answers to this process go; undefined while it is not connected. */
  replyAddress(): string | undefined;
  /** Opens a box for the answers to one question; open it before asking. */
  expectReplies(correlationId: string): ReplyBox;
  /** Answers whoever asked; nobody waits for its arrival. */
  reply(to: ReplyAddress, body: unknown): void;
  consume<P>(job: Job<P>, handle: Handler<P>, options?: { prefetch?: number }): Promise<Consumer>;
  /** Messages ready in a queue, and its consumers. */
  depth(queue: string): Promise<{ ready: number; consumers: number }>;
  stats(): Record<string, number>;
  close(): Promise<void>;
};

const publishTimeoutMs = 10_000;

const encode = (body: unknown): Buffer => Buffer.from(JSON.stringify(body));

/** Declares everything the jobs need; on a channel of its own, which a refusal may close. */
const declare = async (model: ChannelModel, jobs: readonly Job[]): Promise<void> => {
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  for (const [name, { type, alternate }] of Object.entries(exchanges)) {
    await channel.assertExchange(name, type, {
      durable: true,
      ...(alternate ? { alternateExchange: alternate } : {}),
    });
  }
  const { queues, bindings } = topologyOf(jobs);
  await Promise.all(
    queues.map((queue) =>
      channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments }),
    ),
  );
  await Promise.all(
    bindings.map(({ queue, exchange, key }) => channel.bindQueue(queue, exchange, key)),
  );
  await channel.close();
};

/** The broker over two connections, one that only publishes and one that only consumes (reference 04 section 5). */
export const createBroker = (options: BrokerOptions): Broker => {
  const { urls, processName, jobs, log, clock } = options;
  const consumers = new Set<AttachableConsumer>();
  const counts = { replyLost: 0, reconnects: 0 };
  const handled: Record<string, number> = {};
  let consuming: ChannelModel | undefined;
  let started: (() => void) | undefined;
  const up = new Promise<void>((resolve) => {
    started = resolve;
  });

  const replies = createReplies(log);
  const publisher = createPublisher({
    log,
    timeoutMs: options.publishTimeoutMs ?? publishTimeoutMs,
    isBlocked: () => publishing.isBlocked(),
    onReplyReturned: () => {
      counts.replyLost++;
    },
  });

  const announce = (): void => {
    if (publisher.ready() && consuming) started?.();
  };

  const publishing = createConnection({
    urls,
    name: `${processName} publish`,
    log,
    setup: async (model) => {
      await declare(model, jobs);
      await publisher.attach(model);
      announce();
    },
    lost: () => {
      counts.reconnects++;
      publisher.detach();
    },
  });

  const receiving = createConnection({
    urls,
    name: `${processName} consume`,
    log,
    setup: async (model) => {
      await declare(model, jobs);
      await replies.attach(model);
      consuming = model;
      for (const consumer of consumers) await consumer.attach(model);
      announce();
    },
    lost: () => {
      counts.reconnects++;
      consuming = undefined;
      replies.detach();
      for (const consumer of consumers) consumer.detach();
    },
  });

  const consume: Broker['consume'] = async (job, handle, { prefetch = job.prefetch } = {}) => {
    const onHandled = (name: string, kind: string): void => {
      handled[`${name}.${kind}`] = (handled[`${name}.${kind}`] ?? 0) + 1;
    };
    const consumer = createConsumer({ publisher, clock, log, onHandled }, job, handle, prefetch);
    consumers.add(consumer);
    if (consuming) await consumer.attach(consuming);
    return {
      stop: async () => {
        await consumer.stop();
        consumers.delete(consumer);
      },
    };
  };

  const depth: Broker['depth'] = async (queue) => {
    if (!consuming) throw new Error('the broker is not connected');
    const channel = await consuming.createChannel();
    channel.on('error', () => undefined);
    const { messageCount, consumerCount } = await channel.checkQueue(queue);
    await channel.close();
    return { ready: messageCount, consumers: consumerCount };
  };

  return {
    start: async () => {
      void publishing.start();
      void receiving.start();
      await up;
    },
    ready: () => publisher.ready() && replies.address() !== undefined,
    publish: (job, payload, publishOptions) =>
      publisher.send('job', job.name, encode(payload), {
        ...freshProperties(publishOptions, clock.now()),
        mandatory: true,
      }),
    emit: (type, body, publishOptions) =>
      publisher.send('events', type, encode(body), freshProperties(publishOptions, clock.now())),
    replyAddress: replies.address,
    expectReplies: replies.expect,
    reply: ({ replyTo, correlationId }, body) =>
      publisher.tell(replyTo, encode(body), { correlationId, contentType: 'application/json' }),
    consume,
    depth,
    stats: () => ({ ...publisher.counts, ...counts, ...handled }),
    close: async () => {
      publisher.stop();
      await receiving.close();
      await publishing.close();
    },
  };
};

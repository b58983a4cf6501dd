// The broker as the rest of the house sees it: publish, emit, ask, answer, consume.
import type { Job } from '../../jobs.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import { createConnection } from './connection.ts';
import type { Consumer } from './consumer.ts';
import { declare } from './declare.ts';
import { freshProperties, type Handler, type PublishOptions } from './message.ts';
import { createPublisher } from './publisher.ts';
import { createReceiving } from './receiving.ts';
import type { ReplyBox } from './replies.ts';

export type BrokerOptions = {
  /** Several addresses are tried in turn. */
  urls: readonly string[];
  processName: string;
  jobs: readonly Job[];
  log: Log;
  clock: Clock;
  /** Whether an error of a handler passes by itself (an engine is away). */
  isOutage(error: unknown): boolean;
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

/** The broker over two connections, one that only publishes and one that only consumes (reference 04 section 5). */
export const createBroker = (options: BrokerOptions): Broker => {
  const { urls, processName, jobs, log, clock } = options;
  const counts: Record<string, number> = { replyLost: 0, reconnects: 0 };
  const { promise: up, resolve: onUp } = Promise.withResolvers<void>();

  const count = (name: string): void => {
    counts[name] = (counts[name] ?? 0) + 1;
  };

  const publisher = createPublisher({
    log,
    timeoutMs: options.publishTimeoutMs ?? publishTimeoutMs,
    isBlocked: () => publishing.isBlocked(),
    onReplyReturned: () => count('replyLost'),
  });

  const ready = (): boolean => publisher.ready() && receiving.connected();

  const publishing = createConnection({
    ...{ urls, log, name: `${processName} publish` },
    setup: async (model) => {
      await declare(model, jobs);
      await publisher.attach(model);
      if (ready()) onUp();
    },
    lost: () => {
      count('reconnects');
      publisher.detach();
    },
  });

  const receiving = createReceiving({
    ...{ urls, jobs, log, name: `${processName} consume` },
    consumers: {
      ...{ publisher, clock, log, isOutage: options.isOutage },
      onHandled: (job, kind) => count(`${job}.${kind}`),
    },
    onChange: () => {
      if (ready()) onUp();
    },
  });

  return {
    ready,
    start: async () => {
      void publishing.start();
      void receiving.start();
      await up;
    },
    publish: (job, payload, publishOptions) =>
      publisher.send('job', job.name, encode(payload), {
        ...freshProperties(publishOptions, clock.now()),
        mandatory: true,
      }),
    emit: (type, body, publishOptions) =>
      publisher.send('events', type, encode(body), freshProperties(publishOptions, clock.now())),
    replyAddress: receiving.replies.address,
    expectReplies: receiving.replies.expect,
    reply: ({ replyTo, correlationId }, body) =>
      publisher.tell(replyTo, encode(body), { correlationId, contentType: 'application/json' }),
    consume: (job, handle, { prefetch = job.prefetch } = {}) =>
      receiving.consume(job, handle, prefetch),
    depth: receiving.depth,
    stats: () => ({ ...publisher.counts, ...counts }),
    close: async () => {
      await receiving.close();
      await publishing.close();
      publisher.stop();
    },
  };
};

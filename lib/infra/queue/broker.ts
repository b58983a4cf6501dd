// The broker as the rest of the house sees it: publish, emit, ask, answer, consume.
import type { Channel } from 'amqplib';
import type { Job } from '../../jobs.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import { noTracing, type Tracing } from '../../kernel/tracing.ts';
import { createAnswering } from './answers.ts';
import { createConnection } from './connection.ts';
import type { Consumer, OnJob } from './consumer.ts';
import { createRestore, declare } from './declare.ts';
import { BrokerUnavailable } from './errors.ts';
import { createGuard } from './guard.ts';
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
  /** Continues the traces of those who publish; default: none. */
  tracing?: Tracing;
  /** Hears of every job that was settled. */
  onJob?: OnJob;
  /** Sees every channel when it is opened: tests provoke its errors. */
  onChannel?: (role: string, channel: Channel) => void;
};

export type ReplyAddress = { replyTo: string; correlationId: string };

export type Broker = {
  /** Resolves when the broker is connected and its topology stands; keeps trying for ever. Rejects on `close`. */
  start(): Promise<void>;
  /** Whether a publish would be tried now, and its answer could arrive. */
  ready(): boolean;
  /**
   * Puts a job into its fresh queue; resolves when the broker has confirmed it.
   * @throws BrokerUnavailable, QueueFull, Unroutable (nothing was queued), OutcomeUnknown
   */
  publish<P>(job: Job<P>, payload: P, options: PublishOptions): Promise<void>;
  /**
   * Publishes to the exchange of events; nobody need be bound. Throws like publish, but Unroutable never; QueueFull
   * says that at least one bound queue is full, the others have the event: the consumers know doubles by its id.
   */
  emit(type: string, body: unknown, options: PublishOptions): Promise<void>;
  /** Where answers to this process go; undefined while it is not connected. */
  replyAddress(): string | undefined;
  /** Opens a box for the answers to one question; open it before asking, and close it at the end. */
  expectReplies(correlationId: string): ReplyBox;
  /** Answers whoever asked; not repeated, and what finds nobody is counted as `replyLost`. */
  reply(to: ReplyAddress, body: unknown): void;
  consume<P>(job: Job<P>, handle: Handler<P>, options?: { prefetch?: number }): Promise<Consumer>;
  /** Messages ready in a queue, and its consumers. @throws BrokerUnavailable, amqplib's error (code 404) */
  depth(queue: string): Promise<{ ready: number; consumers: number }>;
  /** Work on a channel of its own, for looking into queues. @throws BrokerUnavailable */
  look<T>(work: (channel: Channel) => Promise<T>): Promise<T>;
  /** Jobs this process has in hand and has not settled, by job, for every job it consumes. */
  inHand(): Record<string, number>;
  /** Jobs this process has settled since it started, by job, whatever became of them. */
  handled(): Record<string, number>;
  /**
   * Counters since the start (published, returned, nacked, unknown, refused, replyLost, reconnects, channelDeaths,
   * cancelled, `<job>.published`, `<job>.<outcome>`), and `unconfirmed` as it is now.
   */
  stats(): Record<string, number>;
  /** Stops the consumers (25 s at most), waits a moment for confirms, then disconnects; never throws. */
  close(): Promise<void>;
};

const publishTimeoutMs = 10_000;

const encode = (body: unknown): Buffer => Buffer.from(JSON.stringify(body));

type Counted = 'replyLost' | 'reconnects' | 'channelDeaths' | 'cancelled' | `${string}.${string}`;

const createCounts = () => {
  const counts: Record<string, number> = {
    replyLost: 0,
    reconnects: 0,
    channelDeaths: 0,
    cancelled: 0,
  };
  return {
    add: (name: Counted, count = 1): void => {
      counts[name] = (counts[name] ?? 0) + count;
    },
    all: counts,
  };
};

/** The two connections, one that only publishes and one that only consumes (reference 04 section 5). */
const createSides = (options: BrokerOptions, onReady: () => void) => {
  const { urls, processName, jobs, log, clock, isOutage } = options;
  const counts = createCounts();
  const guard = createGuard({
    log,
    onDeath: () => counts.add('channelDeaths'),
    onChannel: options.onChannel,
  });
  const onReconnect = (): void => counts.add('reconnects');

  const publisher = createPublisher({
    guard,
    timeoutMs: options.publishTimeoutMs ?? publishTimeoutMs,
    isBlocked: () => publishing.isBlocked(),
    onReplyLost: (count) => counts.add('replyLost', count),
    log,
  });
  const publishing = createConnection({
    ...{ urls, log, onReconnect, name: `${processName} publish` },
    setup: async (model) => {
      await declare(model, jobs);
      await publisher.attach(model);
      onReady();
    },
    lost: publisher.detach,
  });
  const receiving = createReceiving({
    ...{ urls, log, onReconnect, name: `${processName} consume` },
    declare: (model) => declare(model, jobs),
    consumers: {
      ...{ publisher, clock, log, isOutage, guard, restore: createRestore(jobs) },
      tracing: options.tracing ?? noTracing,
      onHandled: (done) => {
        counts.add(`${done.job}.${done.outcome}`);
        options.onJob?.(done);
      },
      onCancelled: () => counts.add('cancelled'),
    },
    onChange: onReady,
  });
  return { publisher, publishing, receiving, counts };
};

/** Publishes in a span of its own, which the message names as the one to go on from. */
const inSpan = (
  tracing: Tracing,
  destination: string,
  options: PublishOptions,
  send: (options: PublishOptions) => Promise<void>,
): Promise<void> => {
  if (!tracing.on) return send(options);
  const attributes = {
    ...{ 'messaging.system': 'rabbitmq', 'messaging.operation.name': 'publish' },
    ...{ 'messaging.destination.name': destination, 'messaging.message.id': options.messageId },
  };
  return tracing.span({ kind: 'producer', name: `publish ${destination}`, attributes }, () =>
    send({ ...options, traceparent: tracing.traceparent() }),
  );
};

/** The broker of a process. @throws Error when an address is no URL; nothing is connected before `start` */
export const createBroker = (options: BrokerOptions): Broker => {
  const { clock, tracing = noTracing } = options;
  const up = Promise.withResolvers<void>();
  up.promise.catch(() => undefined);
  const ready = (): boolean => publisher.ready() && receiving.connected();
  const { publisher, publishing, receiving, counts } = createSides(options, () => {
    if (ready()) up.resolve();
  });
  const answering = createAnswering(publisher.tell);

  return {
    ready,
    start: async () => {
      void publishing.start();
      void receiving.start();
      await up.promise;
    },
    // Asynchronous also in what JSON refuses: a caller has one place for errors.
    publish: async (job, payload, publishOptions) => {
      await inSpan(tracing, job.name, publishOptions, (traceable) =>
        publisher.send('job', job.name, encode(payload), {
          ...freshProperties(traceable, clock.now()),
          mandatory: true,
        }),
      );
      counts.add(`${job.name}.published`);
    },
    emit: async (type, body, publishOptions) =>
      inSpan(tracing, type, publishOptions, (traceable) =>
        publisher.send('events', type, encode(body), freshProperties(traceable, clock.now())),
      ),
    replyAddress: receiving.replies.address,
    expectReplies: receiving.replies.expect,
    reply: ({ replyTo, correlationId }, body) => answering.add(replyTo, { correlationId, body }),
    consume: (job, handle, { prefetch = job.prefetch } = {}) =>
      receiving.consume(job, handle, prefetch),
    depth: receiving.depth,
    look: receiving.look,
    inHand: receiving.inHand,
    handled: receiving.handled,
    stats: () => ({ ...publisher.counts(), ...counts.all }),
    close: async () => {
      up.reject(new BrokerUnavailable('this process is closing'));
      // Jobs that are being finished still publish what became of them.
      await receiving.close();
      answering.flush();
      await publisher.stop();
      await publishing.close();
    },
  };
};

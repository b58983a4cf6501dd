// Publishing: confirmed and persistent; refused at once when the broker could not take it.
import { setTimeout as pause } from 'node:timers/promises';
import {
  type ChannelModel,
  type ConfirmChannel,
  IllegalOperationError,
  type Options,
} from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { type Answer, encodeAnswers, readAnswers } from './answers.ts';
import { BrokerUnavailable } from './errors.ts';
import type { Guard } from './guard.ts';
import { createUnconfirmed, type PublishCounts } from './unconfirmed.ts';

/** More than this is a broker that does not keep up: refusing is honest, a hidden buffer is not. */
const maxUnconfirmed = 2_000;
const sweepMs = 250;
const drainWithinMs = 5_000;

export type Publisher = {
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
  ready(): boolean;
  /** Resolves when the broker has the message. `mandatory` messages must reach a queue. */
  send(exchange: string, key: string, content: Buffer, options: Options.Publish): Promise<void>;
  /** Sends answers without waiting: nobody repeats them. */
  tell(queue: string, answers: readonly Answer[]): void;
  counts(): PublishCounts & { refused: number; unconfirmed: number };
  /** Takes nothing more and waits a moment for the confirms that are still to come. */
  stop(): Promise<void>;
};

export type PublisherOptions = {
  guard: Guard;
  /** How long the broker may take to confirm. */
  timeoutMs: number;
  isBlocked(): boolean;
  /** So many answers found nobody, or could not be sent. */
  onReplyLost(count: number): void;
  log: Log;
};

/** A publisher on whatever connection is attached. */
export const createPublisher = (options: PublisherOptions): Publisher => {
  const { guard, timeoutMs, isBlocked, onReplyLost, log } = options;
  const unconfirmed = createUnconfirmed(timeoutMs);
  let channel: ConfirmChannel | undefined;
  let stopped = false;
  let refused = 0;
  const sweep = setInterval(() => unconfirmed.failOverdue(performance.now()), sweepMs);
  sweep.unref();

  const refusal = (reason: string): BrokerUnavailable => {
    refused++;
    return new BrokerUnavailable(reason);
  };

  const usable = (): ConfirmChannel => {
    if (stopped) throw refusal('this process is closing');
    if (!channel) throw refusal('the broker is not connected');
    if (isBlocked()) throw refusal('the broker takes no messages now');
    if (unconfirmed.size() >= maxUnconfirmed) throw refusal('too much is unconfirmed');
    return channel;
  };

  const send: Publisher['send'] = (exchange, key, content, properties) =>
    new Promise<void>((resolve, reject) => {
      const target = usable();
      const { messageId = '', mandatory } = properties;
      const mandatoryKey = mandatory ? key : undefined;
      const entry = unconfirmed.open({ messageId, mandatoryKey, resolve, reject });
      try {
        target.publish(exchange, key, content, properties, (error: unknown) =>
          unconfirmed.settle(entry, error),
        );
      } catch (error) {
        // Thrown before anything was written: the channel has just gone, or the message cannot be encoded.
        unconfirmed.drop(entry);
        reject(error instanceof IllegalOperationError ? refusal('the channel is closed') : error);
      }
    });

  const tell: Publisher['tell'] = (queue, answers) => {
    // Replies are never kept for later: while the broker reads nothing they would pile up in memory.
    if (!channel || isBlocked()) return onReplyLost(answers.length);
    try {
      const properties = { contentType: 'application/json', mandatory: true };
      channel.publish('', queue, encodeAnswers(answers), properties);
    } catch {
      onReplyLost(answers.length);
    }
  };

  return {
    ...{ send, tell },
    attach: async (model) => {
      const opened = await model.createConfirmChannel();
      guard(model, opened, 'publish');
      opened.on('return', (message) => {
        // Only replies go through the default exchange.
        if (message.fields.exchange === '') onReplyLost(readAnswers(message.content, log).length);
        else unconfirmed.returned(message);
      });
      channel = opened;
    },
    detach: () => {
      channel = undefined;
      unconfirmed.failAll();
    },
    ready: () => channel !== undefined && !stopped && !isBlocked(),
    counts: () => ({ ...unconfirmed.counts, refused, unconfirmed: unconfirmed.size() }),
    stop: async () => {
      stopped = true;
      const until = performance.now() + drainWithinMs;
      while (unconfirmed.awaited() > 0 && performance.now() < until) await pause(10);
      clearInterval(sweep);
    },
  };
};

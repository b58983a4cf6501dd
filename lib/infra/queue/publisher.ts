// Publishing: confirmed and persistent; refused at once when the broker could not take it.
import type { ChannelModel, ConfirmChannel, Options } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { guardChannel } from './connection.ts';
import { BrokerUnavailable } from './errors.ts';
import { createUnconfirmed, type PublishCounts } from './unconfirmed.ts';

/** More than this is a broker that does not keep up: refusing is honest, a hidden buffer is not. */
const maxUnconfirmed = 2_000;
const sweepMs = 250;

export type Publisher = {
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
  ready(): boolean;
  /** Resolves when the broker has the message. `mandatory` messages must reach a queue. */
  send(exchange: string, key: string, content: Buffer, options: Options.Publish): Promise<void>;
  /** Sends without waiting: for replies, which nobody repeats. */
  tell(queue: string, content: Buffer, options: Options.Publish): void;
  counts: PublishCounts;
  stop(): void;
};

/** A publisher on whatever connection is attached; `onReplyReturned` counts answers nobody waited for. */
export const createPublisher = (options: {
  log: Log;
  timeoutMs: number;
  isBlocked(): boolean;
  onReplyReturned(): void;
}): Publisher => {
  const { log, timeoutMs, isBlocked, onReplyReturned } = options;
  const unconfirmed = createUnconfirmed(timeoutMs);
  let channel: ConfirmChannel | undefined;
  const sweep = setInterval(() => unconfirmed.failOverdue(Date.now()), sweepMs);
  sweep.unref();

  const usable = (): ConfirmChannel => {
    if (!channel || isBlocked()) throw new BrokerUnavailable('the broker is not connected');
    if (unconfirmed.size() >= maxUnconfirmed)
      throw new BrokerUnavailable('too much is unconfirmed');
    return channel;
  };

  const send: Publisher['send'] = (exchange, key, content, properties) =>
    new Promise<void>((resolve, reject) => {
      const target = usable();
      const { messageId = '', mandatory = false } = properties;
      const tag = unconfirmed.open({ messageId, mandatory: Boolean(mandatory), resolve, reject });
      try {
        target.publish(exchange, key, content, properties, (error: unknown) =>
          unconfirmed.settle(tag, error),
        );
      } catch {
        // amqplib throws when the channel has just gone: nothing was written.
        unconfirmed.drop(tag);
        reject(new BrokerUnavailable('the channel is closed'));
      }
    });

  return {
    send,
    counts: unconfirmed.counts,
    attach: async (model) => {
      const opened = await model.createConfirmChannel();
      guardChannel(model, opened, log);
      opened.on('return', (message) => {
        if (!unconfirmed.returned(message)) onReplyReturned();
      });
      channel = opened;
    },
    detach: () => {
      channel = undefined;
      unconfirmed.failAll('the connection was lost before the broker confirmed');
    },
    ready: () => channel !== undefined && !isBlocked(),
    tell: (queue, content, properties) => {
      try {
        channel?.publish('', queue, content, { ...properties, mandatory: true });
      } catch {
        onReplyReturned();
      }
    },
    stop: () => clearInterval(sweep),
  };
};

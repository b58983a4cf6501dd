// Publishing: confirmed, mandatory, persistent; refused at once when the broker could not take it.
import type { ChannelModel, ConfirmChannel, Message, Options } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { guardChannel } from './connection.ts';
import { BrokerUnavailable, OutcomeUnknown, QueueFull, Unroutable } from './errors.ts';

const maxUnconfirmed = 2_000;
const sweepMs = 250;

type Waiting = {
  messageId: string;
  deadline: number;
  returned: boolean;
  resolve(): void;
  reject(error: Error): void;
};

export type PublishCounts = {
  published: number;
  returned: number;
  nacked: number;
  unknown: number;
};

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

export const createPublisher = (options: {
  log: Log;
  timeoutMs: number;
  isBlocked(): boolean;
  onReplyReturned(): void;
}): Publisher => {
  const { log, timeoutMs, isBlocked, onReplyReturned } = options;
  const counts: PublishCounts = { published: 0, returned: 0, nacked: 0, unknown: 0 };
  const waiting = new Map<number, Waiting>();
  const byId = new Map<string, Waiting>();
  let channel: ConfirmChannel | undefined;
  let next = 0;

  const take = (tag: number): Waiting | undefined => {
    const entry = waiting.get(tag);
    waiting.delete(tag);
    if (entry) byId.delete(entry.messageId);
    return entry;
  };

  const settle = (tag: number, error: unknown): void => {
    const entry = take(tag);
    if (!entry) return;
    if (entry.returned) entry.reject(new Unroutable('no queue takes the message'));
    else if (!error) {
      counts.published++;
      entry.resolve();
    } else if (error instanceof Error && error.message === 'message nacked') {
      counts.nacked++;
      entry.reject(new QueueFull('the queue is full'));
    } else entry.reject(new OutcomeUnknown('the connection was lost before the broker confirmed'));
  };

  const onReturn = ({ properties }: Message): void => {
    counts.returned++;
    const entry = byId.get(String(properties.messageId));
    if (entry) entry.returned = true;
    else onReplyReturned();
  };

  const failAll = (reason: string): void => {
    for (const tag of [...waiting.keys()]) {
      counts.unknown++;
      take(tag)?.reject(new OutcomeUnknown(reason));
    }
  };

  const sweep = setInterval(() => {
    const now = Date.now();
    for (const [tag, { deadline }] of waiting) {
      if (deadline > now) break;
      counts.unknown++;
      take(tag)?.reject(new OutcomeUnknown('the broker did not confirm in time'));
    }
  }, sweepMs);
  sweep.unref();

  const usable = (): ConfirmChannel => {
    if (!channel || isBlocked()) throw new BrokerUnavailable('the broker is not connected');
    if (waiting.size >= maxUnconfirmed)
      throw new BrokerUnavailable('too many unconfirmed messages');
    return channel;
  };

  return {
    counts,
    attach: async (model) => {
      const opened = await model.createConfirmChannel();
      guardChannel(model, opened, log);
      opened.on('return', onReturn);
      channel = opened;
    },
    detach: () => {
      channel = undefined;
      failAll('the connection was lost before the broker confirmed');
    },
    ready: () => channel !== undefined && !isBlocked(),
    send: (exchange, key, content, properties) =>
      new Promise<void>((resolve, reject) => {
        const tag = next++;
        try {
          const target = usable();
          const messageId = String(properties.messageId);
          const entry = {
            messageId,
            deadline: Date.now() + timeoutMs,
            returned: false,
            resolve,
            reject,
          };
          waiting.set(tag, entry);
          if (properties.mandatory) byId.set(messageId, entry);
          target.publish(exchange, key, content, properties, (error: unknown) =>
            settle(tag, error),
          );
        } catch (error) {
          take(tag);
          reject(
            error instanceof BrokerUnavailable
              ? error
              : new BrokerUnavailable('the channel is closed'),
          );
        }
      }),
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

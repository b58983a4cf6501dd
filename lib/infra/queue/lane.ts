// One queue being consumed on a channel of its own.
import { setTimeout as pause } from 'node:timers/promises';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';
import { type Acks, createAcks } from './acks.ts';
import { closeModel } from './connection.ts';
import type { Guard } from './guard.ts';

export type Lane = {
  queue: string;
  acks: Acks;
  /** Whether deliveries of this channel are still ours. */
  open: boolean;
  /** Ends the subscription; deliveries in hand stay ours. */
  cancel(): Promise<void>;
  /** Acknowledges what is finished and gives everything else back. */
  close(): Promise<void>;
  reject(message: ConsumeMessage): void;
};

export type LaneDeps = {
  guard: Guard;
  log: Log;
  /** Puts back what may be missing when the broker has ended a subscription. */
  restore(model: ChannelModel): Promise<void>;
  onCancelled(): void;
};

export type LaneOptions = {
  deps: LaneDeps;
  model: ChannelModel;
  queue: string;
  prefetch: number;
  onMessage(message: ConsumeMessage, lane: Lane): void;
};

/** A broker in trouble is not asked in a tight loop. */
const giveBackAfterMs = 1_000;
/**
 * A channel of the broker hands acks to a quorum queue in the background, and when it is closed it forgets those
 * that still wait: of 60 single acks before a close it lost 23 (3.10.8), one multiple ack never.
 */
const lingerMs = 100;
/**
 * A queue that is back before a channel has noticed its deletion gets that channel's consumer from the broker itself,
 * which then delivers nothing to it and says nothing (3.10.8: 30 of 30). So every process leaves the others time.
 */
const restoreAfterMs = 1_000;

/** Returns a job whose outcome could not be made durable; the attempt counts towards the delivery limit. */
export const giveBack = (lane: Lane, message: ConsumeMessage): void => {
  if (lane.open) setTimeout(() => lane.reject(message), giveBackAfterMs);
};

const createLane = (queue: string, channel: Channel, release: () => void): Lane => {
  const acks = createAcks(channel);
  const lane: Lane = {
    ...{ queue, acks, open: true },
    cancel: () => Promise.resolve(),
    close: async () => {
      acks.flush();
      await pause(lingerMs);
      lane.open = false;
      release();
      await channel.close().catch(() => undefined);
    },
    reject: (message) => {
      acks.forget(message.fields.deliveryTag);
      try {
        channel.reject(message, true);
      } catch {
        // The channel is gone: the broker has the job back already.
      }
    },
  };
  channel.on('close', () => {
    lane.open = false;
  });
  return lane;
};

/**
 * Opens a channel and subscribes to a queue. A subscription that the broker ends (the queue was deleted, a node is
 * gone) is made anew on the same channel; when that fails, the whole connection is.
 */
export const openLane = async (options: LaneOptions): Promise<Lane> => {
  const { deps, model, queue, prefetch, onMessage } = options;
  const channel = await model.createChannel();
  const lane = createLane(queue, channel, deps.guard(model, channel, queue));
  let cancelled = false;

  const subscribe = async (): Promise<void> => {
    // The tag is the broker's: 3.10 drops the whole connection when one is used twice (reference 04 section 0.5).
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message) onMessage(message, lane);
      else void again();
    });
    lane.cancel = async () => {
      cancelled = true;
      await channel.cancel(consumerTag).catch(() => undefined);
    };
  };

  const again = async (): Promise<void> => {
    if (cancelled) return;
    deps.onCancelled();
    deps.log.warn({ queue }, 'broker ended a subscription');
    await pause(restoreAfterMs);
    if (cancelled || !lane.open) return;
    try {
      await deps.restore(model);
      if (lane.open) await subscribe();
    } catch (error) {
      deps.log.warn({ queue, reason: describeError(error) }, 'subscription not made anew');
      if (lane.open) await closeModel(model);
    }
  };

  await channel.prefetch(prefetch);
  await subscribe();
  return lane;
};

// Consuming a job from its two queues: a bounded number in hand, acknowledged when settled, drained on stop.
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import type { Job } from '../../jobs.ts';
import { describeError } from '../../kernel/redact.ts';
import { type Acks, createAcks } from './acks.ts';
import { guardChannel } from './connection.ts';
import { type Handler, type Outcome, readMeta } from './message.ts';
import { type SettlementDeps, settle } from './settlement.ts';
import { againQueue } from './topology.ts';

export type Consumer = {
  /** Takes nothing more, finishes what runs (25 s at most); what was not begun goes back to its queue. */
  stop(): Promise<void>;
};

export type AttachableConsumer = Consumer & {
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
};

export type ConsumerDeps = SettlementDeps & {
  onHandled(job: string, outcome: Outcome['kind']): void;
};

type Lane = { channel: Channel; tag: string; acks: Acks };

const stopWithinMs = 25_000;
/** A broker in trouble is not asked in a tight loop. */
const giveBackAfterMs = 1_000;

/** Returns a job whose outcome could not be made durable; the attempt counts towards the delivery limit. */
const giveBack = (lane: Lane, message: ConsumeMessage): void => {
  setTimeout(() => {
    lane.acks.forget(message.fields.deliveryTag);
    try {
      lane.channel.reject(message, true);
    } catch {
      // The channel is gone: the broker has the job back already.
    }
  }, giveBackAfterMs);
};

const stopLanes = (lanes: readonly Lane[]) =>
  Promise.all(lanes.map(({ channel, tag }) => channel.cancel(tag).catch(() => undefined)));

const within = async (ms: number, work: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([work, patience]);
  clearTimeout(timer);
};

/** Consumes both queues of a job; `attach` is called for every new connection. */
export const createConsumer = <P>(
  deps: ConsumerDeps,
  job: Job<P>,
  handle: Handler<P>,
  prefetch: number,
): AttachableConsumer => {
  const running = new Set<Promise<void>>();
  let lanes: Lane[] = [];
  let stopping = false;

  const work = async (message: ConsumeMessage, lane: Lane): Promise<void> => {
    const meta = readMeta(message, job.retrySeconds.length + 1);
    try {
      const kind = await settle(deps, job, handle, { message, meta });
      deps.onHandled(job.name, kind);
      lane.acks.finished(message.fields.deliveryTag);
    } catch (error) {
      const reason = describeError(error);
      deps.log.warn({ job: job.name, message_id: meta.messageId, reason }, 'job not settled');
      giveBack(lane, message);
    }
  };

  const onMessage = (message: ConsumeMessage | null, lane: Lane): void => {
    if (message === null) {
      // Cancelled by the broker (queue deleted, node gone): a new connection sets everything up again.
      lane.channel.close().catch(() => undefined);
      return;
    }
    lane.acks.delivered(message.fields.deliveryTag);
    if (stopping) return;
    const task = work(message, lane).finally(() => running.delete(task));
    running.add(task);
  };

  const openLane = async (model: ChannelModel, queue: string): Promise<Lane> => {
    const channel = await model.createChannel();
    guardChannel(model, channel, deps.log);
    await channel.prefetch(prefetch);
    const lane: Lane = { channel, tag: '', acks: createAcks(channel as never) };
    // The tag is the broker's: 3.10 drops the whole connection when one is used twice (reference 04 section 0.5).
    const consumed = await channel.consume(queue, (message) => onMessage(message, lane));
    lane.tag = consumed.consumerTag;
    return lane;
  };

  return {
    attach: async (model) => {
      if (stopping) return;
      lanes = [await openLane(model, job.name), await openLane(model, againQueue(job.name))];
    },
    detach: () => {
      lanes = [];
    },
    stop: async () => {
      stopping = true;
      await stopLanes(lanes);
      await within(stopWithinMs, Promise.all(running));
      for (const lane of lanes) lane.acks.flush();
    },
  };
};

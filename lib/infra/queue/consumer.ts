// Consuming a job: decode, handle, then done, retry or dead; acknowledged only when what follows is safe.
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import type { Job } from '../../jobs.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import { describeError } from '../../kernel/redact.ts';
import { type Acks, createAcks } from './acks.ts';
import { guardChannel } from './connection.ts';
import { failedProperties, type Handler, type Meta, type Outcome, readMeta } from './message.ts';
import type { Publisher } from './publisher.ts';
import { againQueue, waitQueue } from './topology.ts';

export type Consumer = { stop(): Promise<void> };

export type AttachableConsumer = Consumer & {
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
};

export type ConsumerDeps = {
  publisher: Pick<Publisher, 'send'>;
  clock: Clock;
  log: Log;
  onHandled(job: string, outcome: Outcome['kind']): void;
};

type Lane = { channel: Channel; tag: string; acks: Acks };

const stopWithinMs = 25_000;

/** The rung of the ladder that waits at least `seconds`, else the longest. */
const rungFor = (ladder: readonly number[], seconds: number): number =>
  ladder.find((rung) => rung >= seconds) ?? ladder.at(-1) ?? 1;

const decode = <P>(job: Job<P>, content: Buffer): { payload: P } | { fault: string } => {
  try {
    const checked = job.payload.validate(JSON.parse(content.toString('utf8')), { convert: false });
    return checked.error ? { fault: 'malformed_payload' } : { payload: checked.value as P };
  } catch {
    return { fault: 'malformed_json' };
  }
};

/** Why a job that asked for another attempt gets none. */
const finalReason = (meta: Meta, now: number): string | undefined => {
  if (meta.deadlineMs !== undefined && meta.deadlineMs <= now) return 'deadline_passed';
  return meta.lastAttempt ? 'attempts_exhausted' : undefined;
};

/** Consumes both queues of a job; `attach` is called for every new connection. */
export const createConsumer = <P>(
  deps: ConsumerDeps,
  job: Job<P>,
  handle: Handler<P>,
  prefetch: number,
): AttachableConsumer => {
  const { publisher, clock, log } = deps;
  const running = new Set<Promise<void>>();
  let lanes: Lane[] = [];
  let stopping = false;

  const bury = async (
    message: ConsumeMessage,
    meta: Meta,
    reason: string,
    detail: string,
  ): Promise<void> => {
    const failure = { reason, queue: job.name, attempt: meta.attempt };
    const properties = failedProperties(meta, { ...failure, detail }, clock.now());
    await publisher.send('dead', job.name, message.content, { ...properties, mandatory: true });
    log.error({ job: job.name, message_id: meta.messageId, reason, detail }, 'job is dead');
  };

  const retry = async (
    message: ConsumeMessage,
    meta: Meta,
    { reason, afterSeconds }: Extract<Outcome, { kind: 'retry' }>,
  ): Promise<Outcome['kind']> => {
    const final = finalReason(meta, clock.now());
    if (final) {
      await bury(message, meta, final, reason);
      return 'dead';
    }
    const rung = rungFor(job.retrySeconds, afterSeconds ?? job.retrySeconds[meta.attempt - 1] ?? 1);
    const failure = { reason, detail: reason, queue: job.name, attempt: meta.attempt + 1 };
    await publisher.send('retry', waitQueue(job.name, rung), message.content, {
      ...failedProperties(meta, failure, clock.now()),
      mandatory: true,
    });
    return 'retry';
  };

  const outcomeOf = async (message: ConsumeMessage, meta: Meta): Promise<Outcome> => {
    const decoded = decode(job, message.content);
    if ('fault' in decoded) return { kind: 'dead', reason: decoded.fault };
    try {
      return await handle(decoded.payload, meta);
    } catch (error) {
      const reason = describeError(error);
      log.warn(
        { job: job.name, message_id: meta.messageId, attempt: meta.attempt, reason },
        'job failed',
      );
      return { kind: 'retry', reason };
    }
  };

  const work = async (message: ConsumeMessage, lane: Lane): Promise<void> => {
    const meta = readMeta(message, job.retrySeconds.length + 1);
    try {
      const outcome = await outcomeOf(message, meta);
      let kind = outcome.kind;
      if (outcome.kind === 'retry') kind = await retry(message, meta, outcome);
      if (outcome.kind === 'dead') await bury(message, meta, outcome.reason, outcome.reason);
      deps.onHandled(job.name, kind);
      lane.acks.finished(message.fields.deliveryTag);
    } catch (error) {
      // The broker did not take what should follow: unacknowledged, the job comes again with the connection.
      log.warn(
        { job: job.name, message_id: meta.messageId, reason: describeError(error) },
        'job not settled',
      );
      reject(lane, message);
    }
  };

  const onMessage = (message: ConsumeMessage | null, lane: Lane): void => {
    if (message === null) {
      // The broker cancelled us (queue deleted, node gone): a new connection sets everything up again.
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
    guardChannel(model, channel, log);
    await channel.prefetch(prefetch);
    const lane: Lane = { channel, tag: '', acks: createAcks(channel as never) };
    // Made by the broker: 3.10 drops the whole connection when a tag is used twice (reference 04 section 0.5).
    const { consumerTag } = await channel.consume(queue, (message) => onMessage(message, lane));
    lane.tag = consumerTag;
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
      await Promise.all(
        lanes.map(({ channel, tag }) => channel.cancel(tag).catch(() => undefined)),
      );
      let timer: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, stopWithinMs);
      });
      await Promise.race([Promise.all(running), patience]);
      clearTimeout(timer);
      for (const lane of lanes) lane.acks.flush();
    },
  };
};

/** Gives one job back to its queue after a moment, so that a broker in trouble is not asked in a tight loop. */
const rejectAfterMs = 1_000;

const reject = (lane: Lane, message: ConsumeMessage): void => {
  setTimeout(() => {
    try {
      lane.acks.forget(message.fields.deliveryTag);
      lane.channel.reject(message, true);
    } catch {
      // The channel is gone, and with it the delivery.
    }
  }, rejectAfterMs);
};

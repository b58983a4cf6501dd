// Consuming a job from its two queues: a bounded number in hand, acknowledged when settled, drained on stop.
import type { ChannelModel, ConsumeMessage } from 'amqplib';
import type { Job } from '../../jobs.ts';
import { within } from '../../kernel/in-time.ts';
import { describeError } from '../../kernel/redact.ts';
import type { Tracing } from '../../kernel/tracing.ts';
import { giveBack, type Lane, type LaneDeps, openLane } from './lane.ts';
import { type Handler, type Meta, readMeta } from './message.ts';
import { type Received, type Settled, type SettlementDeps, settle } from './settlement.ts';
import { againQueue } from './topology.ts';
import { createTurns } from './turns.ts';

export type Consumer = {
  /** Takes nothing more, finishes what runs (25 s at most); what was not begun goes back to its queue. */
  stop(): Promise<void>;
};

export type AttachableConsumer = Consumer & {
  job: string;
  /** Jobs that the broker has given out and that are not settled: being worked on, or waiting for their turn. */
  inHand(): number;
  /** Consumes on a new connection. */
  attach(model: ChannelModel): Promise<void>;
  detach(): void;
};

export type ConsumerDeps = SettlementDeps & LaneDeps & { onHandled: OnJob; tracing: Tracing };

/** A job that was settled. */
export type SettledJob = Settled & {
  job: string;
  meta: Meta;
  /** How long it was worked on, ms. */
  ms: number;
  /** From its publication until it was taken up, ms. */
  waitedMs: number;
};
export type OnJob = (settled: SettledJob) => void;

const stopWithinMs = 25_000;
/** For what the broker must answer when a consumer stops. */
const answerWithinMs = 2_000;
/** Jobs on their second attempt never take all of a worker's hands from fresh ones. */
const maxAgainPrefetch = 50;

const againOf = (prefetch: number): number => Math.min(prefetch, maxAgainPrefetch);

/** The most messages of a job that one process has in hand. */
export const mostInHand = ({ prefetch }: Pick<Job, 'prefetch'>): number =>
  prefetch + againOf(prefetch);

/** Runs the work on a job in a span that goes on with the trace of whoever published it. */
const traced = (
  tracing: Tracing,
  job: string,
  { meta, queue }: Received,
  work: () => Promise<Settled>,
): Promise<Settled> => {
  if (!tracing.on) return work();
  const attributes = {
    ...{ 'messaging.system': 'rabbitmq', 'messaging.operation.name': 'process' },
    ...{ 'messaging.destination.name': queue, 'messaging.message.id': meta.messageId },
    'tessera.attempt': meta.attempt,
  };
  const start = { kind: 'consumer', name: `process ${job}`, attributes } as const;
  return tracing.span({ ...start, parent: meta.traceparent }, async (span) => {
    const settled = await work();
    span.set({ 'tessera.outcome': settled.outcome });
    if (settled.outcome !== 'done') span.fail(settled.reason ?? settled.outcome);
    return settled;
  });
};

/** Consumes both queues of a job; `attach` is called for every new connection. */
export const createConsumer = <P>(
  deps: ConsumerDeps,
  job: Job<P>,
  handle: Handler<P>,
  prefetch: number,
): AttachableConsumer => {
  const attempts = job.retrySeconds.length + 1;
  const turns = createTurns(job.bytesAtOnce ?? Number.POSITIVE_INFINITY);
  let lanes: Lane[] = [];
  let stopping = false;
  let working = 0;
  let onIdle: (() => void) | undefined;

  const work = async (message: ConsumeMessage, lane: Lane): Promise<void> => {
    const meta = readMeta(message, attempts);
    const startedAt = performance.now();
    const waitedMs = deps.clock.now() - meta.firstPublishedAtMs;
    try {
      const received = { message, meta, queue: lane.queue, held: () => lane.open };
      const settled = await traced(deps.tracing, job.name, received, () =>
        settle(deps, job, handle, received),
      );
      const ms = performance.now() - startedAt;
      deps.onHandled({ ...settled, job: job.name, meta, ms, waitedMs });
      lane.acks.finished(message.fields.deliveryTag);
    } catch (error) {
      const reason = describeError(error);
      deps.log.warn({ job: job.name, message_id: meta.messageId, reason }, 'job not settled');
      giveBack(lane, message);
    }
    turns.end(message.content.length);
    if (--working === 0) onIdle?.();
  };

  const onMessage = (message: ConsumeMessage, lane: Lane): void => {
    lane.acks.delivered(message.fields.deliveryTag);
    // Not begun: goes back when the channel closes.
    if (stopping) return;
    turns.take(message.content.length, () => {
      working++;
      void work(message, lane);
    });
  };

  const open = (model: ChannelModel, queue: string, hands: number): Promise<Lane> =>
    openLane({ deps, model, queue, prefetch: hands, onMessage });

  const closeLanes = async (): Promise<void> => {
    const closing = lanes.map((lane) => lane.close());
    lanes = [];
    await within(answerWithinMs, Promise.all(closing));
  };

  const idle = (): Promise<void> =>
    new Promise((resolve) => {
      onIdle = resolve;
      if (working === 0) resolve();
    });

  return {
    job: job.name,
    inHand: () => working + turns.waiting(),
    attach: async (model) => {
      if (stopping) return;
      const again = againOf(prefetch);
      lanes = [
        await open(model, job.name, prefetch),
        await open(model, againQueue(job.name), again),
      ];
      if (stopping) await closeLanes();
    },
    detach: () => {
      lanes = [];
      // The broker delivers them again.
      turns.clear();
    },
    stop: async () => {
      stopping = true;
      turns.clear();
      for (const lane of lanes) lane.acks.hold();
      await within(answerWithinMs, Promise.all(lanes.map((lane) => lane.cancel())));
      await within(stopWithinMs, idle());
      await closeLanes();
    },
  };
};

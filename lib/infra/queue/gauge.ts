// How much is in the queues, as the broker itself counts it at this moment.
import type { Job } from '../../jobs.ts';
import type { Broker } from './broker.ts';
import { againQueue, deadQueue, waitQueue } from './topology.ts';

/** Ready messages of a job's queues; nothing here is a moment old. */
export type Depths = {
  job: string;
  fresh: number;
  again: number;
  /** By rung of the ladder. */
  waiting: { seconds: number; ready: number }[];
  dead: number;
  /** Consumers of the fresh queue: one for each worker process that takes the job. */
  consumers: number;
};

/** Asks for every queue of the jobs, on one channel. @throws BrokerUnavailable, amqplib's error for a missing queue */
export const readDepths = (broker: Pick<Broker, 'look'>, jobs: readonly Job[]): Promise<Depths[]> =>
  broker.look(async (channel) =>
    Promise.all(
      jobs.map(async ({ name, retrySeconds }) => {
        const rungs = [...new Set(retrySeconds)];
        const [fresh, again, dead, ...waits] = await Promise.all(
          [name, againQueue(name), deadQueue(name), ...rungs.map((s) => waitQueue(name, s))].map(
            (queue) => channel.checkQueue(queue),
          ),
        );
        return {
          job: name,
          fresh: fresh?.messageCount ?? 0,
          again: again?.messageCount ?? 0,
          waiting: rungs.map((seconds, n) => ({ seconds, ready: waits[n]?.messageCount ?? 0 })),
          dead: dead?.messageCount ?? 0,
          consumers: fresh?.consumerCount ?? 0,
        };
      }),
    ),
  );

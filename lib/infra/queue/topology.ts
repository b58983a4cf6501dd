// The topology, read off the job catalogue: exchanges, queues with their arguments, and bindings.
import type { Job } from '../../jobs.ts';

/** No alternate exchange: it would take what no queue takes, and the publisher would never hear of it. */
export const exchanges = {
  job: 'direct',
  retry: 'direct',
  dead: 'direct',
  events: 'topic',
} as const;

export type QueuePlan = { name: string; arguments: Record<string, string | number> };
export type BindingPlan = { queue: string; exchange: keyof typeof exchanges; key: string };
export type Topology = { queues: QueuePlan[]; bindings: BindingPlan[] };

export const againQueue = (job: string): string => `${job}.again`;
export const deadQueue = (job: string): string => `${job}.dead`;
export const isDeadQueue = (queue: string): boolean => queue.endsWith('.dead');
export const waitQueue = (job: string, seconds: number): string => `${job}.wait.${seconds}s`;

/** Crashes a message may cause before it is dead; deploys count too, hence the width (reference 04 section 3). */
const deliveryLimit = 20;

const quorum = { 'x-queue-type': 'quorum' } as const;

// A dead letter is moved only once its target has it.
const safely = {
  'x-dead-letter-strategy': 'at-least-once',
  'x-overflow': 'reject-publish',
} as const;

const work = (job: string) => ({
  ...quorum,
  ...safely,
  'x-delivery-limit': deliveryLimit,
  'x-dead-letter-exchange': 'dead',
  'x-dead-letter-routing-key': job,
});

/**
 * A dead letter that is looked at goes back each time. Without a word from us 4.x drops it at the 21st; -1 for "no
 * limit" is unknown to 3.10. One that is rejected is redriven: the broker itself moves it, and lets go of it only once
 * the other queue has it, so that no death of ours loses or doubles a letter.
 */
const keepsLetters = (job: string) => ({
  ...quorum,
  ...safely,
  'x-delivery-limit': 1_000_000_000,
  'x-dead-letter-exchange': 'job',
  'x-dead-letter-routing-key': againQueue(job),
});

const queuesOf = ({ name, maxLength, retrySeconds }: Job): QueuePlan[] => [
  { name, arguments: { ...work(name), 'x-max-length': maxLength } },
  // No limit: a full target would make the broker retry each dead letter of the ladder every three minutes.
  { name: againQueue(name), arguments: work(name) },
  ...[...new Set(retrySeconds)].map((seconds) => ({
    name: waitQueue(name, seconds),
    arguments: {
      ...quorum,
      ...safely,
      'x-message-ttl': seconds * 1000,
      'x-dead-letter-exchange': 'job',
      'x-dead-letter-routing-key': againQueue(name),
    },
  })),
  { name: deadQueue(name), arguments: keepsLetters(name) },
];

const bindingsOf = ({ name, retrySeconds, bindings }: Job): BindingPlan[] => [
  { queue: name, exchange: 'job', key: name },
  { queue: againQueue(name), exchange: 'job', key: againQueue(name) },
  { queue: deadQueue(name), exchange: 'dead', key: name },
  ...[...new Set(retrySeconds)].map((seconds) => {
    const queue = waitQueue(name, seconds);
    return { queue, exchange: 'retry' as const, key: queue };
  }),
  ...bindings.map((key) => ({ queue: name, exchange: 'events' as const, key })),
];

/** Everything the jobs need on the broker. */
export const topologyOf = (jobs: readonly Job[]): Topology => ({
  queues: jobs.flatMap(queuesOf),
  bindings: jobs.flatMap(bindingsOf),
});

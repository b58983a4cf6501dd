// Receipts on their way in: those of several calls that come within a few milliseconds become one job.
import type { Broker } from '../infra/queue/broker.ts';
import { type Receipt, type StatusJob, whatsappStatus } from '../jobs.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { newId } from '../kernel/ids.ts';

export type StatusIntake = {
  /**
   * Queues what one call of WhatsApp said; resolves when the broker has all of it.
   * @throws BrokerUnavailable, QueueFull, Unroutable, OutcomeUnknown
   */
  take(jobs: readonly StatusJob[], requestId: string): Promise<void>;
  drain(): Promise<void>;
};

type Call = { receipts: Receipt[]; requestId: string };

const maxCalls = 50;
/** A call with more receipts than this is a job of its own: jobs stay small. */
const fewReceipts = 20;
const gatherMs = 2;
/** Nobody waits for most receipts, and behind many the next ones may gather a little longer. */
const busy = { items: 4, waitMs: 10 };

/** A job costs the broker and its worker the same with one receipt or fifty, and each receipt is small. */
export const createStatusIntake = (broker: Pick<Broker, 'publish'>): StatusIntake => {
  const publish = (job: StatusJob, requestId: string): Promise<void> =>
    broker.publish(whatsappStatus, job, { messageId: newId(), requestId });

  const calls = createGrouper<Call, undefined>({
    ...{ maxSize: maxCalls, maxWaitMs: gatherMs, busy },
    run: async (group) => {
      const receipts = group.flatMap((call) => call.receipts);
      await publish({ receipts, due: [] }, group[0]?.requestId ?? newId());
      return [];
    },
  });

  const mayTravelWithOthers = ({ receipts, due, news = [] }: StatusJob): boolean =>
    receipts.length <= fewReceipts && due.length === 0 && news.length === 0;

  return {
    take: async (jobs, requestId) => {
      await Promise.all(
        jobs.map(async (job) => {
          if (mayTravelWithOthers(job)) await calls.add({ receipts: job.receipts, requestId });
          else await publish(job, requestId);
        }),
      );
    },
    drain: calls.drain,
  };
};

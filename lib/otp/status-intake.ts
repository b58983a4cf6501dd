// Receipts on their way in: those of several calls that come within a few milliseconds become one job.
import type { Broker } from '../infra/queue/broker.ts';
import { type Receipt, type StatusJob, whatsappStatus } from '../jobs.ts';
import { createGrouper } from '../kernel/grouper.ts';
import { newId } from '../kernel/ids.ts';

export type StatusIntake = {
  /**
   * Queues what one call of WhatsApp said; resolves with the ids of the jobs it went into when the broker has them.
   * @throws BrokerUnavailable, QueueFull, Unroutable, OutcomeUnknown
   */
  take(jobs: readonly StatusJob[], requestId: string): Promise<string[]>;
  drain(): Promise<void>;
};

type Call = { receipts: Receipt[]; requestId: string };

const maxCalls = 50;
/** A call with more receipts than this is a job of its own: jobs stay small. */
const fewReceipts = 20;
const gatherMs = 2;
/** Nobody waits for most receipts, and behind many the next ones may gather a little longer. */
const busy = { items: 4, waitMs: 10 };

/**
 * A job carries the request id and the trace of one call, the first; the line of each call names the job instead, since
 * carrying the ids of all would make every job larger for what is looked up once in a while.
 * A job costs the broker and its worker the same with one receipt or fifty, and each receipt is small.
 */
export const createStatusIntake = (broker: Pick<Broker, 'publish'>): StatusIntake => {
  const publish = async (job: StatusJob, requestId: string): Promise<string> => {
    const messageId = newId();
    await broker.publish(whatsappStatus, job, { messageId, requestId });
    return messageId;
  };

  const calls = createGrouper<Call, string>({
    ...{ maxSize: maxCalls, maxWaitMs: gatherMs, busy },
    run: async (group) => {
      const receipts = group.flatMap((call) => call.receipts);
      const id = await publish({ receipts, due: [] }, group[0]?.requestId ?? newId());
      return group.map(() => id);
    },
  });

  const mayTravelWithOthers = ({ receipts, due, news = [] }: StatusJob): boolean =>
    receipts.length <= fewReceipts && due.length === 0 && news.length === 0;

  return {
    take: (jobs, requestId) =>
      Promise.all(
        jobs.map((job) =>
          mayTravelWithOthers(job)
            ? calls.add({ receipts: job.receipts, requestId })
            : publish(job, requestId),
        ),
      ),
    drain: calls.drain,
  };
};

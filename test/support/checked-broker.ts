// A broker that publishes only what its consumer would take: what differs is told where it was made, not buried later.
import type { Broker } from '../../lib/infra/queue/broker.ts';
import type { Job } from '../../lib/jobs.ts';

/** What a consumer would hold against a payload; undefined when nothing. */
export const misfitOf = (job: Job, payload: unknown): string | undefined =>
  job.payload.validate(JSON.parse(JSON.stringify(payload)), { convert: false }).error?.message;

/** Makes every publish of `broker` that its consumer would bury fail, and answers those there were. */
export const checkPublishes = (broker: Broker): string[] => {
  const misfits: string[] = [];
  const publish = broker.publish;
  broker.publish = async (job, payload, options) => {
    const misfit = misfitOf(job as Job, payload);
    if (misfit !== undefined) {
      misfits.push(`${job.name}: ${misfit}`);
      throw new Error(misfits.at(-1));
    }
    return publish(job, payload, options);
  };
  return misfits;
};

// The product's work behind the answers (receipts, events, history): when it is done, so that no round inherits any.
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'amqplib';
import { jobs } from '../../lib/jobs.ts';
import type { Simulator } from './simulator.ts';

const everyMs = 50;
const withinMs = 120_000;
/** The simulators gather statuses for 20 ms, workers what they write for about as long: quiet must last. */
const quietLooks = 6;

export type Background = {
  /** Resolves when nothing waits any more, with the ms that took. @throws Error after two minutes */
  done(): Promise<number>;
  close(): Promise<void>;
};

/** Watches the product's queues in `amqpUrl` and the webhooks of the simulators. */
export const watchBackground = async (
  amqpUrl: string,
  simulator: Simulator,
): Promise<Background> => {
  const connection = await connect(amqpUrl, { noDelay: true });
  const channel = await connection.createChannel();
  const queues = jobs.flatMap(({ name }) => [name, `${name}.again`]);

  const waiting = async (): Promise<number> => {
    const { waiting: webhooks } = await simulator.counts();
    const checked = await Promise.all(queues.map((queue) => channel.checkQueue(queue)));
    return checked.reduce((sum, { messageCount }) => sum + messageCount, webhooks);
  };

  return {
    done: async () => {
      const startedAt = Date.now();
      let quietSince = startedAt;
      for (let quiet = 0; quiet < quietLooks; ) {
        if (Date.now() - startedAt > withinMs) throw new Error('The queues do not empty.');
        const count = await waiting();
        if (count > 0) quietSince = Date.now();
        quiet = count > 0 ? 0 : quiet + 1;
        await sleep(everyMs);
      }
      return quietSince - startedAt;
    },
    close: () => connection.close(),
  };
};

// The queues of a stack from outside: how much is in them, and what their messages say about themselves.
import { connect, type GetMessage } from 'amqplib';
import { jobs } from '../../lib/jobs.ts';
import { eventually, type Stack } from './stack.ts';

export type Queues = {
  /** Messages ready in a queue. */
  depth(queue: string): Promise<number>;
  /** What is in a queue, oldest first; everything stays where it is. */
  peek(queue: string): Promise<GetMessage[]>;
  close(): Promise<void>;
};

/** Looks into the queues of a virtual host. */
export const openQueues = async (url: string): Promise<Queues> => {
  const connection = await connect(url);
  const channel = await connection.createChannel();
  return {
    depth: async (queue) => (await channel.checkQueue(queue)).messageCount,
    peek: async (queue) => {
      const found: GetMessage[] = [];
      for (;;) {
        const message = await channel.get(queue);
        if (message === false) break;
        found.push(message);
      }
      if (found.length > 0) channel.nackAll(true);
      return found;
    },
    close: () => connection.close(),
  };
};

const allWorkers = ['whatsapp', 'telegram', 'billing', 'analytics', 'webhook'];

/** Resolves when every job that was queued before has been dealt with: stopping a worker ends what it has in hand. */
export const settled = async (
  t: Parameters<typeof eventually>[0],
  stack: Stack,
  queues: Queues,
): Promise<void> => {
  const fresh = jobs.flatMap(({ name }) => [name, `${name}.again`]);
  // Twice, since what the first round had in hand may have queued more.
  for (let round = 0; round < 2; round++) {
    await eventually(t, async () => {
      const depths = await Promise.all(fresh.map(queues.depth));
      return depths.every((depth) => depth === 0) || undefined;
    });
    await stack.stopWorkers(...allWorkers);
    await stack.startWorkers(...allWorkers);
  }
};

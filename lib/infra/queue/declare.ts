// Puts the topology on the broker.
import type { ChannelModel } from 'amqplib';
import type { Job } from '../../jobs.ts';
import { exchanges, topologyOf } from './topology.ts';

/** Declares everything the jobs need; on a channel of its own, which a refusal may close. */
export const declare = async (model: ChannelModel, jobs: readonly Job[]): Promise<void> => {
  const channel = await model.createChannel();
  channel.on('error', () => undefined);
  for (const [name, type] of Object.entries(exchanges)) {
    await channel.assertExchange(name, type, { durable: true });
  }
  const { queues, bindings } = topologyOf(jobs);
  await Promise.all(
    queues.map((queue) =>
      channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments }),
    ),
  );
  await Promise.all(
    bindings.map(({ queue, exchange, key }) => channel.bindQueue(queue, exchange, key)),
  );
  await channel.close();
};

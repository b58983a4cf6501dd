// Puts the topology on the broker.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import type { Job } from '../../jobs.ts';
import { exchanges, isDeadQueue, type QueuePlan, topologyOf } from './topology.ts';

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;
const preconditionFailed = 406;
const resourceLocked = 405;

const turn = 'topology.renewal';
const turnLookMs = 100;

const open = async (model: ChannelModel) => {
  const channel = await model.createChannel();
  // A refusal closes the channel and says so twice.
  channel.on('error', () => undefined);
  return channel;
};

const assertAll = async (model: ChannelModel, queues: readonly QueuePlan[]): Promise<void> => {
  const channel = await open(model);
  await Promise.all(
    queues.map((queue) =>
      channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments }),
    ),
  );
  await channel.close();
};

/**
 * Runs `work` while no other connection of any process does: an exclusive queue is one connection's alone, and goes
 * with it. Two that delete and declare side by side would delete what the other has just made, and RabbitMQ 3.10 does
 * not survive the end of a queue whose dead-lettering is still being set up.
 */
const inTurn = async (model: ChannelModel, work: () => Promise<void>): Promise<void> => {
  for (;;) {
    const channel = await open(model);
    const taken = await channel.assertQueue(turn, { exclusive: true, durable: false }).then(
      () => true,
      (error: unknown) => {
        if (codeOf(error) !== resourceLocked) throw error;
        return false;
      },
    );
    if (taken) {
      try {
        return await work();
      } finally {
        await channel.deleteQueue(turn).catch(() => undefined);
        await channel.close().catch(() => undefined);
      }
    }
    await sleep(turnLookMs);
  }
};

/**
 * A dead queue of an earlier version cannot give its letters back: an empty one is made anew.
 * @throws Error when it holds letters, which must not be thrown away
 */
const renewOutdated = async (model: ChannelModel, queues: readonly QueuePlan[]): Promise<void> => {
  for (const queue of queues.filter(({ name }) => isDeadQueue(name))) {
    try {
      await assertAll(model, [queue]);
    } catch (error) {
      if (codeOf(error) !== preconditionFailed) throw error;
      const channel = await open(model);
      const { messageCount } = await channel.checkQueue(queue.name);
      if (messageCount > 0) throw new Error(`${queue.name} is of an earlier version and not empty`);
      await channel.deleteQueue(queue.name);
      await channel.close();
      await assertAll(model, [queue]);
    }
  }
};

const declareAll = async (model: ChannelModel, jobs: readonly Job[]): Promise<void> => {
  const { queues, bindings } = topologyOf(jobs);
  const channel = await open(model);
  for (const [name, type] of Object.entries(exchanges)) {
    await channel.assertExchange(name, type, { durable: true });
  }
  await assertAll(model, queues);
  await Promise.all(
    bindings.map(({ queue, exchange, key }) => channel.bindQueue(queue, exchange, key)),
  );
  await channel.close();
};

/** Declares everything the jobs need; on channels of its own, which a refusal may close. */
export const declare = (model: ChannelModel, jobs: readonly Job[]): Promise<void> =>
  declareAll(model, jobs).catch(async (error: unknown) => {
    if (codeOf(error) !== preconditionFailed) throw error;
    await inTurn(model, () => renewOutdated(model, topologyOf(jobs).queues));
    await declareAll(model, jobs);
  });

/**
 * Puts back what was deleted under the consumers of several processes. They all notice at the same moment, and
 * RabbitMQ 3.10 ends the connection (541) of one that declares a quorum queue while another's is being set up: so
 * they go one after the other, and so do the calls of one process, whose connection a turn is no bar to.
 */
export const createRestore = (jobs: readonly Job[]) => {
  let last: Promise<void> = Promise.resolve();
  return (model: ChannelModel): Promise<void> => {
    const run = () => inTurn(model, () => declareAll(model, jobs));
    last = last.then(run, run);
    return last;
  };
};

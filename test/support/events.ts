// What happened: the history of a message as the analytics worker keeps it, and events as they are published.
import { connect } from 'amqplib';
import type { EventWire } from '../../lib/jobs.ts';
import { fromMessageId, idBytes } from '../../lib/kernel/ids.ts';
import type { Stack } from './stack.ts';

const course = ['otp.sent', 'otp.delivered', 'otp.verified', 'otp.failed', 'otp.expired'];

/** Types of the events of a message, in the order in which they happened. */
export const eventsOf = async (stack: Stack, messageId: unknown): Promise<string[]> => {
  const id = fromMessageId(String(messageId)) ?? '';
  const rows = (await stack.api.db('message_events').where({ message_id: idBytes(id) })) as {
    type: string;
    at: number;
  }[];
  // Events of one millisecond stand in the order of a message's course.
  return rows
    .toSorted(
      (one, other) => one.at - other.at || course.indexOf(one.type) - course.indexOf(other.type),
    )
    .map(({ type }) => type);
};

/** Hears the events of one type from now on, as a customer of the exchange would. */
export const listenForEvents = async (stack: Pick<Stack, 'config'>, type: string) => {
  const connection = await connect(stack.config.amqpUrls.split(',')[0] ?? '');
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue('', { exclusive: true });
  await channel.bindQueue(queue, 'events', type);
  const heard: EventWire[] = [];
  await channel.consume(
    queue,
    (message) => {
      const { events } = JSON.parse(message?.content.toString() ?? '{"events":[]}');
      heard.push(...events);
    },
    { noAck: true },
  );
  return { heard, close: () => connection.close() };
};

// The history of a message as the analytics worker keeps it.
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

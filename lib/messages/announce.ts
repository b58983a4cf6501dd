// Announcing events: those of one type that happen within a few milliseconds travel as one message.
import type { Broker } from '../infra/queue/broker.ts';
import type { EventWire } from '../jobs.ts';
import { createGrouper, type Grouper } from '../kernel/grouper.ts';
import type { EventType } from './events.ts';

export type Announcer = {
  /**
   * Resolves when the broker has confirmed the event; throws when it has not. An event that somebody waits for goes
   * at once; the others gather for a moment longer, since a message costs the broker the same with one or fifty.
   */
  announce(event: EventWire, urgency?: { urgent: boolean }): Promise<void>;
  drain(): Promise<void>;
};

const maxSize = 100;
const urgentMs = 1;
const patientMs = 25;

/** An announcer over the exchange `events`; the routing key of an event is its type. */
export const createAnnouncer = (broker: Pick<Broker, 'emit' | 'replyAddress'>): Announcer => {
  const groups = new Map<string, Grouper<EventWire, undefined>>();

  const emit = async (type: string, events: EventWire[]): Promise<undefined[]> => {
    const [first] = events;
    if (first === undefined) return [];
    const replyTo = broker.replyAddress();
    await broker.emit(
      type,
      { events },
      {
        messageId: first.id,
        requestId: first.request_id,
        // Answers to single events name the event's own waiter.
        ...(replyTo === undefined ? {} : { replyTo, correlationId: first.id }),
      },
    );
    return [];
  };

  const groupOf = (type: EventType | string, urgent: boolean): Grouper<EventWire, undefined> => {
    const name = urgent ? `${type} urgent` : type;
    const known = groups.get(name);
    if (known) return known;
    const group = createGrouper<EventWire, undefined>({
      maxSize,
      maxWaitMs: urgent ? urgentMs : patientMs,
      run: (events) => emit(type, events) as Promise<undefined[]>,
    });
    groups.set(name, group);
    return group;
  };

  return {
    announce: async (event, { urgent } = { urgent: event.waiter !== undefined }) => {
      await groupOf(event.type, urgent).add(event);
    },
    drain: async () => {
      await Promise.all([...groups.values()].map((group) => group.drain()));
    },
  };
};

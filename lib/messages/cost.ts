// What a verification cost, where an event cannot know: on the trial a success is free or not when it is posted.
import type { EventWire } from '../jobs.ts';
import type { Plan } from './rules.ts';

const planOf = ({ type, message, data }: EventWire): unknown =>
  type === 'totp.verified' ? data.plan : message?.plan;

/** Whether only the posting decides what the verification costs, and this event was announced before it. */
export const costOpen = (event: EventWire): boolean =>
  event.mode === 'live' &&
  (event.type === 'otp.verified' || event.type === 'totp.verified') &&
  planOf(event) === 'trial' &&
  event.data.cost_micros === undefined;

/** The same event with what it came to, micro-USD. */
export const withCost = (
  event: EventWire,
  { plan, costMicros }: { plan: Plan | null; costMicros: number },
): EventWire => ({
  ...event,
  data: { ...event.data, plan: plan ?? event.data.plan, cost_micros: costMicros },
});

/** What the posting came to, as the event tells it; undefined: it does not. */
export const costTold = ({ data }: EventWire): number | undefined =>
  typeof data.cost_micros === 'number' ? data.cost_micros : undefined;

// The legs of a message: for each channel it was given to, when a worker was asked, took it, and heard the answer.
import type { LegWire } from '../jobs.ts';
import type { ChannelName } from '../messages/rules.ts';

/** A worker opens its job: the leg begins. `queuedAt` is when the job was first published (ms). */
export const openLeg = (
  before: readonly LegWire[],
  leg: { channel: ChannelName; queuedAt: number; attempt: number },
): LegWire[] => [
  ...before,
  {
    ...{ channel: leg.channel, queued_at: leg.queuedAt, attempt: leg.attempt },
    ...{ claimed_at: null, answered_at: null, answer: null },
  },
];

const isOpen = (leg: LegWire | undefined, channel: ChannelName): leg is LegWire =>
  leg !== undefined && leg.channel === channel && leg.answer === null;

/** The message was won for this leg: the channel is called next. */
export const claimLeg = (legs: readonly LegWire[], at: number): LegWire[] =>
  legs.map((leg, index) => (index === legs.length - 1 ? { ...leg, claimed_at: at } : leg));

/**
 * What became of the leg: `accepted`, or why not. A word that comes when nobody holds the job any more (a receipt,
 * or the lack of one) is a leg of its own, which only has an answer.
 */
export const answerLeg = (
  legs: readonly LegWire[],
  { channel, answer, at }: { channel: ChannelName; answer: string; at: number },
): LegWire[] => {
  const last = legs.at(-1);
  const ended = { answered_at: at, answer };
  return isOpen(last, channel)
    ? [...legs.slice(0, -1), { ...last, ...ended }]
    : [...legs, { channel, queued_at: null, attempt: null, claimed_at: null, ...ended }];
};

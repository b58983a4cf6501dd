// The sequence of an event: which of two news about one object is the later one, read off the events themselves, so that
// it is the same however often and in whatever order they travel.
import type { EventWire } from '../jobs.ts';

/**
 * The course of a message, with gaps for what comes between. Delivered beats failed and verified beats all, whatever
 * happened first, as in the state of a message (lib/messages/rules.ts).
 */
const course: Record<string, number> = {
  'otp.sent': 10,
  'otp.failed': 30,
  'otp.delivered': 40,
  'otp.expired': 60,
  'otp.verified': 80,
};
/** Beside the same news of WhatsApp: Telegram is only ever the fallback. */
const fallback = 5;
/** A failure that is learnt when the code has expired already is the later news of the two. */
const failedAfterExpiry = 70;

const ofMessage = ({ type, at, data }: EventWire): number => {
  const place = course[type] ?? 0;
  const expiresAt = data.expires_at;
  if (type === 'otp.failed' && typeof expiresAt === 'number' && at >= expiresAt) {
    return failedAfterExpiry;
  }
  const byFallback = data.channel === 'telegram' && (place === 10 || place === 40);
  return place + (byFallback ? fallback : 0);
};

/** Of a message its place in the course; of anything else, whose events are seconds apart at least, the time in ms. */
export const sequenceOf = (event: EventWire): number =>
  event.message === null ? event.at : ofMessage(event);

// Evidence for tests of the pumping guard: settled messages and the events that say so.
import type { EventWire } from '../../lib/jobs.ts';
import { newId } from '../../lib/kernel/ids.ts';
import { messageEvent } from '../../lib/messages/events.ts';
import type { Facts, Message } from '../../lib/messages/rules.ts';

export const start = 1_800_000_000_000;
const minute = 60_000;

export type Course = {
  accountId?: string;
  mode?: Message['mode'];
  origin?: Message['origin'];
  phone?: string;
  country?: string;
  type?: 'otp.sent' | 'otp.delivered' | 'otp.verified' | 'otp.expired' | 'otp.failed';
  at?: number;
  /** How long before `at` a channel took it; five minutes by default. */
  lastedMs?: number;
  /** It has a receipt. */
  arrived?: boolean;
  failureReason?: Facts['failureReason'];
};

/** The event that ends a message of this course. */
export const ending = (course: Course = {}): EventWire => {
  const { type = 'otp.expired', at = start, lastedMs = 5 * minute } = course;
  const message: Message = {
    id: newId(),
    accountId: course.accountId ?? 'a1',
    mode: course.mode ?? 'live',
    origin: course.origin ?? 'send',
    phone: course.phone ?? '+14155550123',
    country: course.country ?? 'US',
    requestId: 'req-1',
    plan: 'trial',
    priceMicros: 0,
    idempotencyHash: null,
  };
  return messageEvent(type, message, at, {
    channel: 'whatsapp',
    acceptedAt: at - lastedMs,
    deliveredAt: course.arrived ? at : null,
    failureReason: course.failureReason ?? null,
  });
};

/** `count` of them, in numbers of one prefix. */
export const endings = (count: number, course: Course = {}): EventWire[] =>
  Array.from({ length: count }, (_, index) =>
    ending({ phone: `+1415555${1_000 + index}`, ...course }),
  );

/** `count` of them, each in a block of numbers of its own. */
export const spread = (count: number, course: Course = {}): EventWire[] =>
  Array.from({ length: count }, (_, index) =>
    ending({ phone: `+1415${200 + index}4567`, ...course }),
  );

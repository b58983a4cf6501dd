// Settling: what happened to messages and enrollments is recorded and charged, then whoever waits is told.
import type { Poster } from '../billing/post.ts';
import {
  chargeForSend,
  chargeForSuccess,
  chargeForTotp,
  type Posting,
  refundForFailure,
} from '../billing/rules.ts';
import type { Broker } from '../infra/queue/broker.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import type { EventWire } from '../jobs.ts';
import { type Facts, type Message, noFacts, type Plan } from '../messages/rules.ts';
import type { MessageStore } from '../messages/store.ts';
import { fromWire } from '../messages/wire.ts';

export type SettleDeps = { messages: MessageStore; poster: Poster; broker: Pick<Broker, 'reply'> };

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

const factsOf = ({ at, data }: EventWire): Facts => ({
  ...noFacts,
  channel: (data.channel as Facts['channel'] | undefined) ?? null,
  acceptedAt: numberOf(data.accepted_at),
  expiresAt: numberOf(data.expires_at),
  deliveredAt: numberOf(data.delivered_at),
  verifiedAt: at,
});

const totpPosting = (event: EventWire): Posting =>
  chargeForTotp({
    ...{ accountId: event.account_id, enrollmentId: String(event.data.enrollment_id) },
    ...{ step: Number(event.data.step), plan: event.data.plan as Plan },
    ...{ priceMicros: Number(event.data.price_micros), at: event.at },
  });

/** What an event about a message costs. A failure gives back only what was charged when a channel took it. */
const messagePosting = async (
  { messages }: SettleDeps,
  event: EventWire,
  message: Message,
): Promise<Posting | undefined> => {
  if (event.type === 'otp.verified') return chargeForSuccess(message, event.at);
  if (event.type === 'otp.sent') return chargeForSend(message, event.at);
  const refund = refundForFailure(message, event.at);
  const stored = refund && (await messages.find(message.accountId, message.id));
  return stored?.facts.acceptedAt == null ? undefined : refund;
};

const postingOf = async (deps: SettleDeps, event: EventWire): Promise<Posting | undefined> => {
  if (event.mode === 'test') return undefined;
  if (event.type === 'totp.verified') return totpPosting(event);
  return event.message ? messagePosting(deps, event, fromWire(event.message)) : undefined;
};

const settle = async (deps: SettleDeps, event: EventWire): Promise<boolean> => {
  const posting = await postingOf(deps, event);
  const [posted] = await Promise.all([
    posting && deps.poster.post(posting),
    event.type === 'otp.verified' && event.message
      ? deps.messages.merge(fromWire(event.message), factsOf(event))
      : undefined,
  ]);
  return posted !== 'too_early';
};

/**
 * Handles the job billing.charge; doing it twice records, charges and answers the same. A refund that overtook its
 * charge comes again.
 */
export const handleBilling = async (
  deps: SettleDeps,
  job: { events: EventWire[] },
  meta: Meta,
): Promise<JobOutcome> => {
  const settled = await Promise.all(job.events.map((event) => settle(deps, event)));
  for (const { waiter } of job.events) {
    if (waiter && meta.replyTo) {
      deps.broker.reply({ replyTo: meta.replyTo, correlationId: waiter }, { settled: true });
    }
  }
  if (settled.every(Boolean)) return { kind: 'done' };
  return { kind: 'retry', reason: 'a refund came before its charge' };
};

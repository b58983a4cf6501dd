// Settling: what happened to messages and enrollments is recorded and charged, then whoever waits is told.
import type { CreditStore } from '../billing/credit-store.ts';
import type { Outcome, Poster } from '../billing/post.ts';
import {
  chargeForSend,
  chargeForSuccess,
  chargeForTotp,
  holdMs,
  type Posting,
  refundForFailure,
} from '../billing/rules.ts';
import type { Broker } from '../infra/queue/broker.ts';
import type { Outcome as JobOutcome, Meta } from '../infra/queue/message.ts';
import { type EventWire, webhookDispatch } from '../jobs.ts';
import { costOpen, withCost } from '../messages/cost.ts';
import { type Facts, isUnknown, type Message, noFacts, type Plan } from '../messages/rules.ts';
import type { MessageStore } from '../messages/store.ts';
import { fromWire } from '../messages/wire.ts';

export type SettleDeps = {
  messages: MessageStore;
  poster: Poster;
  credit: Pick<CreditStore, 'keep' | 'release'>;
  broker: Pick<Broker, 'reply' | 'publish'>;
};

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
    holdId: String(event.data.attempt_id),
  });

/**
 * Whether the recipient may hold the code of a message that failed, and use it. An event that was announced anew does not
 * say so: then its reason does.
 */
const codeMayBeUsed = ({ data }: EventWire): boolean =>
  typeof data.code_open === 'boolean'
    ? data.code_open
    : isUnknown(String(data.failure_reason)) || data.failure_reason === 'not_delivered';

/** A message that failed for good will cost nothing; one whose code may still be used keeps its hold while that lives. */
const endHold = async (
  { credit }: SettleDeps,
  event: EventWire,
  { id, accountId }: Message,
): Promise<void> => {
  const { type, data, at } = event;
  if (type !== 'otp.failed') return;
  if (!codeMayBeUsed(event)) await credit.release(accountId, id, { unsent: false });
  else if (isUnknown(String(data.failure_reason))) await credit.keep(accountId, id, at + holdMs);
};

const present = (postings: (Posting | undefined)[]): Posting[] =>
  postings.filter((posting) => posting !== undefined);

/**
 * What a message of the plan per message costs, read off its row and not off the event: each event is published after
 * the commit of its fact, so in whatever order acceptance and failure come here, the last of them sees both.
 */
const perMessage = async (
  deps: SettleDeps,
  event: EventWire,
  message: Message,
): Promise<Posting[]> => {
  if (message.priceMicros === 0) return [];
  // Its row is written at the same time, and what was verified was taken and is no failure any more.
  if (event.type === 'otp.verified') return present([chargeForSend(message, event.at)]);
  const stored = await deps.messages.find(message.accountId, message.id);
  const taken = stored?.facts.acceptedAt ?? null;
  if (taken === null) {
    await endHold(deps, event, message);
    return [];
  }
  // Both in the hour in which it was taken: what comes back of another hour makes no room under the cap of this one.
  const charge = chargeForSend(message, taken);
  return present(
    stored?.status === 'failed' ? [charge, refundForFailure(message, taken)] : [charge],
  );
};

const messagePostings = async (
  deps: SettleDeps,
  event: EventWire,
  message: Message,
): Promise<Posting[]> => {
  if (message.plan === 'per_message') return perMessage(deps, event, message);
  if (event.type !== 'otp.verified') {
    await endHold(deps, event, message);
    return [];
  }
  return present([chargeForSuccess(message, event.at)]);
};

const postingsOf = async (deps: SettleDeps, event: EventWire): Promise<Posting[]> => {
  if (event.mode === 'test') return [];
  if (event.type === 'totp.verified') return [totpPosting(event)];
  return event.message ? messagePostings(deps, event, fromWire(event.message)) : [];
};

const record = async ({ messages }: SettleDeps, event: EventWire): Promise<void> => {
  if (event.type !== 'otp.verified' || !event.message) return;
  await messages.verified(fromWire(event.message), factsOf(event));
};

/** Webhooks that tell the cost wait for it where only the posting decides it. */
const tellCost = async (
  { broker }: SettleDeps,
  event: EventWire,
  { plan, amountMicros }: Outcome,
): Promise<void> => {
  const told = withCost(event, { plan, costMicros: -amountMicros });
  const named = { messageId: event.id, requestId: event.request_id };
  await broker.publish(webhookDispatch, { events: [told] }, named);
};

const charge = async (deps: SettleDeps, event: EventWire): Promise<void> => {
  // One after the other: a refund follows its charge in the ledger.
  for (const posting of await postingsOf(deps, event)) {
    const outcome = await deps.poster.post(posting);
    if (costOpen(event)) await tellCost(deps, event, outcome);
  }
};

const settle = async (deps: SettleDeps, event: EventWire): Promise<void> => {
  // Its posting may change the plan of a message on the trial, so the row of that is written first.
  if (costOpen(event)) {
    await record(deps, event);
    await charge(deps, event);
  } else await Promise.all([record(deps, event), charge(deps, event)]);
};

/** Handles the job billing.charge; doing it twice records, charges and answers the same. */
export const handleBilling = async (
  deps: SettleDeps,
  job: { events: EventWire[] },
  meta: Meta,
): Promise<JobOutcome> => {
  await Promise.all(job.events.map((event) => settle(deps, event)));
  for (const { waiter } of job.events) {
    if (waiter && meta.replyTo) {
      deps.broker.reply({ replyTo: meta.replyTo, correlationId: waiter }, { settled: true });
    }
  }
  return { kind: 'done' };
};

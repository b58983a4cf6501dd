// The timeline of a message: what its events, its legs, the ledger and its webhooks say of it, in one order.
import type { LegWire } from '../jobs.ts';
import { toUsd } from '../kernel/money.ts';

export type MessageEvent = { id: string; at: number; type: string; data: Record<string, unknown> };
export type Posted = { at: number; kind: 'charge' | 'refund'; amountMicros: number };
export type Attempt = {
  at: number;
  event: string;
  number: number;
  httpStatus: number | null;
  reason: string | null;
};

/** What a step can be; events of one millisecond stand in this order. */
export const stepTypes = [
  'otp.requested',
  'fallback',
  'queued',
  'claimed',
  'provider.accepted',
  'provider.failed',
  'otp.sent',
  'otp.delivered',
  'otp.verified',
  'otp.failed',
  'otp.expired',
  'charged',
  'refunded',
  'webhook.delivered',
  'webhook.failed',
] as const;

export type StepType = (typeof stepTypes)[number];

export type Step = {
  at: number;
  type: StepType;
  channel: string | null;
  reason: string | null;
  /** Of the worker's job, or of the webhook. */
  attempt: number | null;
  /** Micro-USD. */
  amountMicros: number | null;
  event: string | null;
  httpStatus: number | null;
};

const step = (type: StepType, at: number, more: Partial<Step> = {}): Step => ({
  ...{ channel: null, reason: null, attempt: null, amountMicros: null, event: null },
  ...{ httpStatus: null, ...more, type, at },
});

const legSteps = (leg: LegWire, before: LegWire | undefined): Step[] => {
  const { channel, queued_at, claimed_at, answered_at, attempt, answer } = leg;
  const reason = answer === 'accepted' ? null : answer;
  const type = answer === 'accepted' ? 'provider.accepted' : 'provider.failed';
  const isFallback = before !== undefined && before.channel !== channel;
  // A leg that was never claimed was passed over: nobody was asked, so nobody answered.
  const asked = claimed_at !== null || queued_at === null;
  return [
    ...(isFallback && queued_at !== null
      ? [step('fallback', queued_at, { channel, reason: before.answer })]
      : []),
    ...(queued_at === null ? [] : [step('queued', queued_at, { channel })]),
    ...(claimed_at === null ? [] : [step('claimed', claimed_at, { channel, attempt })]),
    ...(answered_at === null || !asked ? [] : [step(type, answered_at, { channel, reason })]),
  ];
};

const isStepType = (type: string): type is StepType =>
  (stepTypes as readonly string[]).includes(type);

const legsOf = ({ data }: MessageEvent): Step[] => {
  const legs = (data.legs ?? []) as LegWire[];
  return legs.flatMap((leg, index) => legSteps(leg, legs[index - 1]));
};

const ownStep = ({ at, type, data }: MessageEvent): Step[] => {
  const [channel, reason] = [data.channel ?? null, data.failure_reason ?? null] as (
    | string
    | null
  )[];
  return isStepType(type) ? [step(type, at, { channel, reason } as Partial<Step>)] : [];
};

const attemptStep = ({ at, event, number, httpStatus, reason }: Attempt): Step => {
  const delivered = httpStatus !== null && httpStatus >= 200 && httpStatus < 300;
  const type = delivered ? 'webhook.delivered' : 'webhook.failed';
  return step(type, at, { event, attempt: number, httpStatus, reason });
};

/** A later event tells of earlier legs again; each step is shown once. */
const withoutRepeats = (steps: readonly Step[]): Step[] => {
  const keyOf = ({ type, at, channel, event }: Step) => `${type} ${at} ${channel} ${event}`;
  return [...new Map(steps.map((one) => [keyOf(one), one])).values()];
};

/** All steps of a message, first to last. Times are ms. */
export const stepsOf = (known: {
  requestedAt: number;
  events: readonly MessageEvent[];
  postings: readonly Posted[];
  attempts: readonly Attempt[];
}): Step[] => {
  const money = known.postings.map(({ at, kind, amountMicros }) =>
    step(kind === 'charge' ? 'charged' : 'refunded', at, { amountMicros }),
  );
  const rank = ({ type }: MessageEvent) => (stepTypes as readonly string[]).indexOf(type);
  const events = known.events.toSorted(
    (one, other) => one.at - other.at || rank(one) - rank(other),
  );
  // In the order in which they follow from each other, which holds where the time is the same.
  const all = [
    step('otp.requested', known.requestedAt),
    ...events.flatMap(legsOf),
    ...events.flatMap(ownStep),
    ...money,
    ...known.attempts.map(attemptStep),
  ];
  return withoutRepeats(all).toSorted((one, other) => one.at - other.at);
};

export const stepView = ({ at, amountMicros, httpStatus, ...rest }: Step) => ({
  at: new Date(at).toISOString(),
  ...rest,
  amount: amountMicros === null ? null : toUsd(amountMicros),
  http_status: httpStatus,
});

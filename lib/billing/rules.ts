// Money: what a posting is, what each plan charges when, and how a batch of postings moves a balance.
import type { SharedGrant } from '../accounts/rules.ts';
import { day, hour } from '../kernel/clock.ts';
import type { Plan } from '../messages/rules.ts';

const usd = 1_000_000;

/** Spec section 8: minimum balance to send, and the price of a TOTP verification; micro-USD. */
export const minimumBalanceMicros = 2 * usd;
export const totpPriceMicros = 2_000;

/** Below this the account's webhook hears that its balance is low. */
export const lowBalanceMicros = 5 * usd;

/** How long the price of an open code is held: the code's life, and what a slow send takes before it. */
export const holdMs = 330_000;

/**
 * How long what is charged without anybody's code is held (messages of the plan per message, TOTP): its charge ends
 * the hold, so this is the longest that billing may be away without an account spending its money twice.
 */
export const dueHoldMs = 6 * hour;

/** The same for a code that was verified and could not be charged at once: that charge is certain. */
export const owedHoldMs = day;

/** How far back unpaid exposure is counted: 24 hours, in hours of the clock; the one being left counts in whole. */
export const exposureHours = 25;

export type PostingKind = 'deposit' | 'grant' | 'charge' | 'totp' | 'refund' | 'adjust';

/** The platform account on the other side of each kind. */
export const counterOf: Record<PostingKind, 'cash' | 'promotion' | 'revenue' | 'adjustment'> = {
  deposit: 'cash',
  grant: 'promotion',
  charge: 'revenue',
  totp: 'revenue',
  refund: 'revenue',
  adjust: 'adjustment',
};

/** One transfer to (positive) or from an account; its reference makes it one however often it is asked for. */
export type Posting = {
  accountId: string;
  reference: string;
  kind: PostingKind;
  amountMicros: number;
  plan: Plan | null;
  priceMicros: number | null;
  messageId: string | null;
  /** What its price is held under, where that is not the message: the hold ends with the posting. */
  holdId?: string;
  note: string | null;
  /**
   * A success that is free while a free verification is left: plan, amount and `usesTrial` are decided when it is
   * posted, under the lock of the account (`decide`).
   */
  mayBeFree?: boolean;
  /** Whether it uses up one of the free verifications; a refund gives one back. */
  usesTrial: boolean;
  /** When what it is for happened, ms: the hour of the spend cap. */
  at: number;
};

export type Balance = {
  micros: number;
  seq: number;
  /** UTC hour (since 1970) in which `spentMicros` was spent. */
  spentHour: number;
  spentMicros: number;
  deposited: boolean;
  trialGranted: number;
  trialUsed: number;
  /** What the account was granted on the shared number until its first deposit. */
  shared: SharedGrant;
};

/** How many messages an account may have unverified on the shared number, after so many that were verified. */
export const sharedAllowance = (
  { unverified, perVerified }: SharedGrant,
  verified: number,
): number => unverified + perVerified * verified;

/** The free verifications that are left to an account on this plan. */
export const freeLeft = (
  { trialGranted, trialUsed }: Pick<Balance, 'trialGranted' | 'trialUsed'>,
  plan: Plan,
): number => (plan === 'trial' ? Math.max(trialGranted - trialUsed, 0) : 0);

export const hourOf = (at: number): number => Math.floor(at / hour);

const spent = (balance: Balance, { kind, amountMicros, at }: Posting): Partial<Balance> => {
  if (kind !== 'charge' && kind !== 'totp' && kind !== 'refund') return {};
  const spentHour = hourOf(at);
  if (spentHour < balance.spentHour) return {};
  const before = spentHour === balance.spentHour ? balance.spentMicros : 0;
  // A refund of what another hour spent does not make room in this one.
  return { spentHour, spentMicros: Math.max(before - amountMicros, 0) };
};

/** The balance after a posting. @throws RangeError when it could not be kept exactly (9 billion USD) */
export const applyPosting = (balance: Balance, posting: Posting): Balance => {
  const micros = balance.micros + posting.amountMicros;
  if (!Number.isSafeInteger(micros)) throw new RangeError('a balance must be a safe integer');
  return {
    ...balance,
    ...spent(balance, posting),
    micros,
    seq: balance.seq + 1,
    deposited: balance.deposited || posting.kind === 'deposit',
    trialUsed: balance.trialUsed + trialUseOf(posting),
  };
};

const trialUseOf = ({ usesTrial, kind }: Posting): number => {
  if (!usesTrial) return 0;
  return kind === 'refund' ? -1 : 1;
};

/**
 * The posting as it is written: a success is free while a free verification of the account is left, and costs its price
 * otherwise, whatever was held for it. An account that never made a deposit is charged nothing.
 */
export const decide = (balance: Balance, onTrial: boolean, posting: Posting): Posting => {
  if (!posting.mayBeFree) return posting;
  const left = balance.trialUsed < balance.trialGranted;
  return onTrial && (left || !balance.deposited)
    ? { ...posting, plan: 'trial', amountMicros: 0, usesTrial: true }
    : { ...posting, plan: 'pay_per_success', usesTrial: false };
};

/** What a batch of postings does to an account. */
export type Change = {
  before: Balance;
  after: Balance;
  /** Whether it was on trial and pays per success from now on. */
  trialEnds: boolean;
};

/** Whether the trial of an account is over: it is used up, and there is money to pay with. */
export const endsTrial = (after: Balance): boolean =>
  after.deposited && after.trialUsed >= after.trialGranted;

export type Priced = { plan: Plan; priceMicros: number; accountId: string; id: string };

const ofMessage = (message: Priced, at: number) => ({
  ...{ accountId: message.accountId, plan: message.plan, priceMicros: message.priceMicros, at },
  ...{ messageId: message.id, note: null },
});

/**
 * What a verified message costs: its price, a free verification where it was sent on the trial and one is left, or
 * nothing more (it was charged when sent).
 */
export const chargeForSuccess = (message: Priced, at: number): Posting | undefined =>
  message.plan === 'per_message'
    ? undefined
    : {
        ...ofMessage(message, at),
        reference: `charge:${message.id}`,
        kind: 'charge',
        mayBeFree: message.plan === 'trial',
        usesTrial: false,
        amountMicros: -message.priceMicros,
      };

/** What a message costs when a channel took it. */
export const chargeForSend = (message: Priced, at: number): Posting | undefined =>
  message.plan === 'per_message' && message.priceMicros > 0
    ? {
        ...ofMessage(message, at),
        ...{ reference: `charge:${message.id}`, kind: 'charge', usesTrial: false },
        amountMicros: -message.priceMicros,
      }
    : undefined;

/** What a message gives back when it failed after it was charged. */
export const refundForFailure = (message: Priced, at: number): Posting | undefined =>
  message.plan === 'per_message' && message.priceMicros > 0
    ? {
        ...ofMessage(message, at),
        ...{ reference: `refund:${message.id}`, kind: 'refund', usesTrial: false },
        amountMicros: message.priceMicros,
      }
    : undefined;

/** What a TOTP verification costs; a step succeeds once, so enrollment and step name it. */
export const chargeForTotp = (given: {
  accountId: string;
  enrollmentId: string;
  step: number;
  plan: Plan;
  priceMicros: number;
  at: number;
  holdId?: string;
}): Posting => ({
  ...{ accountId: given.accountId, at: given.at, plan: given.plan },
  ...{ reference: `totp:${given.enrollmentId}:${given.step}`, kind: 'totp' },
  ...{ priceMicros: given.priceMicros, messageId: null, note: null },
  amountMicros: -given.priceMicros,
  mayBeFree: given.plan === 'trial',
  usesTrial: false,
  ...(given.holdId === undefined ? {} : { holdId: given.holdId }),
});

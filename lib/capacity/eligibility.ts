// What an account may do now: the errors a send would meet, and what a request for more capacity would be judged by.
import type { Account } from '../accounts/rules.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import { rate, totalOf } from '../reports/rules.ts';
import type { Tally } from '../reports/totals-store.ts';
import { capacityBounds } from './rules.ts';

export type Standing = {
  status: Account['status'];
  /** What the gate before a send says of trial, balance and cap (billing/quote.ts); undefined: nothing. */
  money: ErrorCode | undefined;
  /** Whether the shared number would send, what is left of its allowance (null: no end), and whether it is paused. */
  shared: boolean;
  sharedLeft: number | null;
  /** What is left of it in this hour. */
  sharedHourLeft: number;
  sharedPaused: boolean;
  /** Unverified messages cost the platform as much as they may. */
  exposed: boolean;
  /** A burst, sustained or hourly limit has nothing left. */
  limited: boolean;
};

/** Which errors a send would meet now whoever it goes to, in the order in which a send meets them. */
export const blockersOf = (standing: Standing): ErrorCode[] => {
  const { status, money, shared, sharedLeft, sharedHourLeft, sharedPaused } = standing;
  const limited = standing.limited || (shared && standing.exposed);
  if (status === 'suspended') return ['ACCOUNT_SUSPENDED'];
  if (status === 'closed') return ['INVALID_API_KEY'];
  return [
    ...(shared && sharedPaused ? (['CENTRAL_WHATSAPP_PAUSED'] as const) : []),
    ...(money === undefined ? [] : [money]),
    ...(shared && sharedLeft === 0 ? (['CENTRAL_WHATSAPP_CONNECT_REQUIRED'] as const) : []),
    ...(shared && sharedHourLeft === 0 ? (['CENTRAL_WHATSAPP_LIMIT'] as const) : []),
    ...(limited ? (['RATE_LIMIT_EXCEEDED'] as const) : []),
  ];
};

/** Why no capacity can be asked for now; empty: it can. */
export const requestReasons = (account: Account, pending: boolean): string[] => [
  ...(account.status === 'active' ? [] : ['The account is not active.']),
  ...(pending ? ['A request is pending.'] : []),
];

/** What a review looks at (spec section 8), as it stands over the last days. */
export const reviewFacts = (given: {
  days: number;
  deposited: boolean;
  ownNumber: boolean;
  blockedPrefixes: number;
  tallies: readonly Tally[];
}) => {
  const counts = totalOf(given.tallies);
  return {
    deposited: given.deposited,
    own_number: given.ownNumber,
    blocked_prefixes: given.blockedPrefixes,
    days: given.days,
    requested: counts.requested,
    delivery_rate: rate(counts.delivered, counts.requested),
    conversion_rate: rate(counts.verified, counts.accepted),
  };
};

/** What the fields of a request must keep to. */
export const requestBounds = {
  per_minute: capacityBounds.sustained,
  per_10_seconds: capacityBounds.burst,
  justification_characters: capacityBounds.justification,
} as const;

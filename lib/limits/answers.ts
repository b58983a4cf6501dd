// What a client is told about limits: the extras of a refusal and the RateLimit headers.
import type { Tier } from './rules.ts';
import type { AllowanceName, Dimension, LimitRow, Reason } from './table.ts';

/** A refusal by one row; times in seconds as the wire has them. */
export type Refusal = {
  name: string;
  reason: Reason;
  layer: 'origin';
  dimension: Dimension;
  /** Whole seconds, rounded up, 1…86400: after them this row has room again. */
  retryAfterSeconds: number;
  /** RFC 3339, UTC. */
  resetAt: string;
  windowSeconds: number;
  limit: number;
};

const maxSeconds = 86_400;

const wholeSeconds = (ms: number): number =>
  Math.min(Math.max(Math.ceil(ms / 1_000), 1), maxSeconds);

/** The refusal of `row`, which has room again `waitMs` after `nowMs` (both ms). */
export const refusalOf = (
  row: Pick<LimitRow, 'name' | 'reason' | 'dimension' | 'limit' | 'windowMs'>,
  waitMs: number,
  nowMs: number,
): Refusal => {
  const retryAfterSeconds = wholeSeconds(waitMs);
  return {
    name: row.name,
    reason: row.reason,
    layer: 'origin',
    dimension: row.dimension,
    retryAfterSeconds,
    resetAt: new Date(nowMs + retryAfterSeconds * 1_000).toISOString(),
    windowSeconds: wholeSeconds(row.windowMs),
    limit: row.limit,
  };
};

export type RefusalExtras = {
  reason: Reason;
  layer: 'origin';
  dimension: Dimension;
  retry_after_seconds: number;
  reset_at: string;
  window_seconds: number;
  limit: number;
};

/** The optional properties of the error object (spec section 7); `Retry-After` is the same number of seconds. */
export const refusalExtras = (refusal: Refusal): RefusalExtras => ({
  reason: refusal.reason,
  layer: refusal.layer,
  dimension: refusal.dimension,
  retry_after_seconds: refusal.retryAfterSeconds,
  reset_at: refusal.resetAt,
  window_seconds: refusal.windowSeconds,
  limit: refusal.limit,
});

/** How much of one of an account's three send allowances is in use; `resetMs` until the oldest use leaves, 0 if none. */
export type Allowance = {
  name: AllowanceName;
  limit: number;
  windowMs: number;
  used: number;
  resetMs: number;
};

/** `RateLimit-Policy`: the account's send allowances as the IETF draft writes quotas (structured field list). */
export const rateLimitPolicy = (tier: Tier): string =>
  `"burst";q=${tier.burst};w=10, "sustained";q=${tier.sustained};w=60, "hourly";q=${tier.hourly};w=3600`;

/** `RateLimit`: the allowance with the least left, and the seconds until it grows again (left out when unused). */
export const rateLimitState = (allowances: readonly Allowance[]): string | undefined => {
  const left = (allowance: Allowance) => Math.max(allowance.limit - allowance.used, 0);
  const [tightest] = allowances.toSorted((a, b) => left(a) - left(b) || b.resetMs - a.resetMs);
  if (tightest === undefined) return undefined;
  const wait = tightest.used > 0 ? `;t=${wholeSeconds(tightest.resetMs)}` : '';
  return `"${tightest.name}";r=${left(tightest)}${wait}`;
};

/**
 * The headers of an answer to an API key. They speak of the account's own allowances only: what is left of a
 * recipient's would show one customer another's traffic.
 */
export const rateLimitHeaders = (
  tier: Tier,
  allowances: readonly Allowance[],
): Record<string, string> => {
  const state = rateLimitState(allowances);
  return {
    'RateLimit-Policy': rateLimitPolicy(tier),
    ...(state === undefined ? {} : { RateLimit: state }),
    'X-Service-Rate-Tier': tier.name,
  };
};

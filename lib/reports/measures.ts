// What is counted of messages: each measure as the column of a rollup and as the SQL that counts it.
import { latencyBounds } from './latency.ts';

// A message that arrived was delivered whether or not a receipt said so: a verification proves it.
const arrived = '(delivered_at IS NOT NULL OR read_at IS NOT NULL OR verified_at IS NOT NULL)';

// Receipts carry the provider's clock: nothing arrives before it was accepted.
const since = (column: string): string =>
  `GREATEST(CAST(${column} AS SIGNED) - CAST(accepted_at AS SIGNED), 0)`;

const spans = [...latencyBounds, undefined].map((to, index) => ({
  from: latencyBounds[index - 1],
  to,
}));

// COUNT counts in integers, where SUM of a condition adds decimals: several times as slow.
const countOf = (condition: string): string => `COUNT(${condition} OR NULL)`;

const histogram = (name: string, latency: string): [string, string][] =>
  spans.map(({ from, to }, index) => {
    const lower = from === undefined ? [] : [`${latency} > ${from}`];
    const upper = to === undefined ? [] : [`${latency} <= ${to}`];
    return [`${name}_${index}`, countOf([...lower, ...upper].join(' AND '))];
  });

const plain = {
  requested: 'COUNT(*)',
  accepted: 'COUNT(accepted_at)',
  delivered: countOf(arrived),
  verified: countOf("status = 'verified'"),
  failed: countOf("status = 'failed'"),
  expired: countOf("status = 'expired'"),
  spent_micros: `SUM(CASE WHEN plan = 'pay_per_success' AND status = 'verified' THEN price_micros
    WHEN plan = 'per_message' AND accepted_at IS NOT NULL AND status <> 'failed' THEN price_micros
    ELSE 0 END)`,
  deliver_ms: `COALESCE(SUM(${since('delivered_at')}), 0)`,
  verify_ms: `COALESCE(SUM(${since('verified_at')}), 0)`,
} as const;

const deliver = histogram('deliver', since('delivered_at'));
const verify = histogram('verify', since('verified_at'));

/** All columns that are counted, in the order of every statement here. */
export const measures: readonly string[] = [
  ...Object.keys(plain),
  ...[...deliver, ...verify].map(([name]) => name),
];

/** Those that are no part of a histogram. */
export const plainMeasures: readonly string[] = Object.keys(plain);

/** The columns of the two histograms, in the order of the spans. */
export const histogramColumns = {
  deliver: deliver.map(([name]) => name),
  verify: verify.map(([name]) => name),
} as const;

/** Counts messages: `expression AS column, …`. */
export const countingSql = [...Object.entries(plain), ...deliver, ...verify]
  .map(([name, sql]) => `${sql} AS ${name}`)
  .join(', ');

/** Adds up rows of a rollup to be kept: `SUM(column) AS column, …`. */
export const addingSql = measures.map((name) => `SUM(${name}) AS ${name}`).join(', ');

/**
 * The same to be shown, in floating point: four times as fast as decimals, and exact up to 2^53 (micro-USD: nine
 * thousand million dollars).
 */
export const showingSql = (columns: readonly string[]): string =>
  columns.map((name) => `SUM(${name} + 0E0) AS ${name}`).join(', ');

// Analytics of an account: totals beside the period before, over time, as a funnel, and by channel.
import type { Clock } from '../kernel/clock.ts';
import { toUsd } from '../kernel/money.ts';
import {
  addCounts,
  type Counts,
  channelNames,
  fillGaps,
  noCounts,
  periodOf,
  rate,
  spanOf,
} from './rules.ts';
import type { ReportStore } from './store.ts';

export type ReportDeps = { reports: ReportStore; clock: Clock };

const iso = (ms: number): string => new Date(ms).toISOString();

/** What counts come to, in the wire's own names. */
const totalsView = (counts: Counts) => ({
  requested: counts.requested,
  accepted: counts.accepted,
  delivered: counts.delivered,
  verified: counts.verified,
  failed: counts.failed,
  expired: counts.expired,
  delivery_rate: rate(counts.delivered, counts.requested),
  conversion_rate: rate(counts.verified, counts.accepted),
  spend: toUsd(counts.spentMicros),
});

const collect = async ({ reports, clock }: ReportDeps, accountId: string, days: number) => {
  const now = clock.now();
  const { from, to, before } = periodOf(days, now);
  const spanMs = spanOf(days);
  const buckets = await reports.count(accountId, { from, to, spanMs });
  return { now, from, to, before, spanMs, buckets };
};

type Collected = Awaited<ReturnType<typeof collect>>;

const frame = (days: number, { from, to, now }: Collected) => ({
  ...{ period: days, from: iso(from), to: iso(to), as_of: iso(now) },
});

/** GET /v1/clients/analytics. */
export const analytics = async (deps: ReportDeps, accountId: string, days: number) => {
  const collected = await collect(deps, accountId, days);
  const { before, from } = collected;
  const earlier = await deps.reports.count(accountId, {
    from: before,
    to: from,
    spanMs: from - before,
  });
  return {
    ...frame(days, collected),
    totals: totalsView(collected.buckets.reduce(addCounts, noCounts)),
    previous: totalsView(earlier.reduce(addCounts, noCounts)),
  };
};

/** GET /v1/clients/analytics/timeseries: no span is left out. */
export const timeseries = async (deps: ReportDeps, accountId: string, days: number) => {
  const collected = await collect(deps, accountId, days);
  const points = fillGaps(collected.buckets, collected);
  return {
    ...frame(days, collected),
    interval: spanOf(days) === 3_600_000 ? ('hour' as const) : ('day' as const),
    points: points.map((point) => ({ at: iso(point.at), ...totalsView(point) })),
  };
};

/** GET /v1/clients/analytics/funnel: one cohort, the messages created in the period. */
export const funnel = async (deps: ReportDeps, accountId: string, days: number) => {
  const collected = await collect(deps, accountId, days);
  const totals = collected.buckets.reduce(addCounts, noCounts);
  const names = ['requested', 'accepted', 'delivered', 'verified'] as const;
  const steps = names.map((name, index) => {
    const before = totals[names[index - 1] ?? name];
    return {
      ...{ step: name, count: totals[name], dropped: before - totals[name] },
      ...{ rate: rate(totals[name], totals.requested), step_rate: rate(totals[name], before) },
    };
  });
  return { ...frame(days, collected), steps };
};

/** GET /v1/clients/analytics/channels: how each channel did, and how fast. */
export const channels = async (deps: ReportDeps, accountId: string, days: number) => {
  const collected = await collect(deps, accountId, days);
  const items = channelNames.map((name) => {
    const own = collected.buckets.filter(({ channel }) => channel === name);
    const counts = own.reduce(addCounts, noCounts);
    const mean = (ms: number, count: number) => (count === 0 ? null : Math.round(ms / count));
    return {
      ...{ channel: name, ...totalsView(counts) },
      mean_delivery_ms: mean(counts.deliverMs, counts.delivered),
      mean_verification_ms: mean(counts.verifyMs, counts.verified),
    };
  });
  return { ...frame(days, collected), channels: items };
};

// Analytics of an account: totals beside the period before, over time, as a funnel, and by channel.
import { type Clock, day, hour } from '../kernel/clock.ts';
import { toUsd } from '../kernel/money.ts';
import type { Mode } from '../messages/rules.ts';
import { type Histogram, percentile, sizeOf } from './latency.ts';
import type { RollupStore } from './rollup-store.ts';
import {
  type Counts,
  channelNames,
  countedUntil,
  fillGaps,
  periodOf,
  rate,
  spanOf,
  totalOf,
} from './rules.ts';
import type { Dimension, Tally, TotalsStore } from './totals-store.ts';

export type ReportDeps = {
  totals: TotalsStore;
  rollupStore: Pick<RollupStore, 'standing'>;
  clock: Clock;
};

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

const latencyView = (histogram: Histogram, sumMs: number) => ({
  p50: percentile(histogram, 0.5, sumMs),
  p95: percentile(histogram, 0.95, sumMs),
  p99: percentile(histogram, 0.99, sumMs),
});

const mean = (ms: number, histogram: Histogram): number | null => {
  const count = sizeOf(histogram);
  return count === 0 ? null : Math.round(ms / count);
};

const latenciesView = (counts: Counts) => ({
  mean_delivery_ms: mean(counts.deliverMs, counts.deliver),
  mean_verification_ms: mean(counts.verifyMs, counts.verify),
  delivery_ms: latencyView(counts.deliver, counts.deliverMs),
  verification_ms: latencyView(counts.verify, counts.verifyMs),
});

/** The frame of every answer: the period, and up to when its messages are counted. */
const frameOf = async ({ rollupStore, clock }: ReportDeps, accountId: string, days: number) => {
  const now = clock.now();
  const { from, to, before } = periodOf(days, now);
  const { monthsUntil, ...heard } = await rollupStore.standing(accountId);
  const until = countedUntil(heard, now);
  const view = { period: days, from: iso(from), to: iso(to), as_of: iso(until) };
  return { now, from, to, before, monthsUntil, view };
};

/** What a report is about: whole UTC days up to today, and the mode of the key that asks; undefined: a session. */
export type ReportQuery = { days: number; keyMode: Mode | undefined };

/** A session is shown live messages, a key those of its mode. */
const countedModes = (keyMode: Mode | undefined): readonly Mode[] => [keyMode ?? 'live'];

/** The modes that stand beside each other: both for a session, for a key its own. */
const shownModes = (keyMode: Mode | undefined): readonly Mode[] =>
  keyMode === undefined ? ['live', 'test'] : [keyMode];

type Span = { from: number; to: number; monthsUntil: number; modes: readonly Mode[] };

/** Counts of messages over whole days, by a dimension or in all. */
const overDays = (
  { totals }: ReportDeps,
  accountId: string,
  span: Span,
  by?: Dimension,
): Promise<Tally[]> =>
  totals.totals(accountId, {
    ...span,
    spanMs: day,
    by,
    latencies: by === 'country' || by === 'channel',
  });

/** GET /v1/clients/analytics. */
export const analytics = async (
  deps: ReportDeps,
  accountId: string,
  { days, keyMode }: ReportQuery,
) => {
  const { from, to, before, monthsUntil, view } = await frameOf(deps, accountId, days);
  const [counted, shown] = [countedModes(keyMode), shownModes(keyMode)];
  const [countries, earlier, modes] = await Promise.all([
    overDays(deps, accountId, { from, to, monthsUntil, modes: counted }, 'country'),
    overDays(deps, accountId, { from: before, to: from, monthsUntil, modes: counted }),
    overDays(deps, accountId, { from, to, monthsUntil, modes: shown }, 'mode'),
  ]);
  const byName = countries.toSorted((one, other) => (one.country < other.country ? -1 : 1));
  return {
    ...view,
    totals: totalsView(totalOf(countries)),
    previous: totalsView(totalOf(earlier)),
    countries: byName
      .toSorted((one, other) => other.requested - one.requested)
      .map((tally) => ({ country: tally.country, ...totalsView(tally), ...latenciesView(tally) })),
    modes: shown.map((mode) => ({
      mode,
      ...totalsView(totalOf(modes.filter((tally) => tally.mode === mode))),
    })),
  };
};

/** GET /v1/clients/analytics/timeseries: no span is left out. */
export const timeseries = async (
  deps: ReportDeps,
  accountId: string,
  { days, keyMode }: ReportQuery,
) => {
  const { from, to, now, view } = await frameOf(deps, accountId, days);
  const spanMs = spanOf(days);
  const tallies = await deps.totals.totals(accountId, {
    ...{ from, to, spanMs, by: 'time', modes: countedModes(keyMode) },
  });
  const points = fillGaps(tallies, { from, to, spanMs, now });
  return {
    ...view,
    interval: spanMs === hour ? ('hour' as const) : ('day' as const),
    points: points.map((point) => ({ at: iso(point.at), ...totalsView(point) })),
  };
};

/** GET /v1/clients/analytics/funnel: one cohort, the messages created in the period. */
export const funnel = async (
  deps: ReportDeps,
  accountId: string,
  { days, keyMode }: ReportQuery,
) => {
  const { from, to, monthsUntil, view } = await frameOf(deps, accountId, days);
  const span = { from, to, monthsUntil, modes: countedModes(keyMode) };
  const totals = totalOf(await overDays(deps, accountId, span));
  const names = ['requested', 'accepted', 'delivered', 'verified'] as const;
  const steps = names.map((name, index) => {
    const before = totals[names[index - 1] ?? name];
    return {
      ...{ step: name, count: totals[name], dropped: before - totals[name] },
      ...{ rate: rate(totals[name], totals.requested), step_rate: rate(totals[name], before) },
    };
  });
  return { ...view, steps };
};

/** GET /v1/clients/analytics/channels: how each channel did, and how fast. */
export const channels = async (
  deps: ReportDeps,
  accountId: string,
  { days, keyMode }: ReportQuery,
) => {
  const { from, to, monthsUntil, view } = await frameOf(deps, accountId, days);
  const span = { from, to, monthsUntil, modes: countedModes(keyMode) };
  const tallies = await overDays(deps, accountId, span, 'channel');
  const items = channelNames.map((name) => {
    const counts = totalOf(tallies.filter(({ channel }) => channel === name));
    return { ...{ channel: name, ...totalsView(counts) }, ...latenciesView(counts) };
  });
  return { ...view, channels: items };
};

// What counts of calls mean: success, classes of errors, and how long they took.
import type { ChannelResult } from '../channels/channel.ts';

/** Upper bounds of the classes of latency, ms; the last class has none. */
const bounds = [25, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400] as const;

export const bucketOf = (ms: number): string =>
  `b:${bounds.find((bound) => ms <= bound) ?? 'more'}`;

/** `accepted`, `unknown`, or the class and the provider's number of a refusal. */
export const fieldOf = (result: ChannelResult): string =>
  result.kind === 'refused' ? `refused:${result.refusal}:${result.code}` : result.kind;

export type Minute = { at: number; fields: readonly (readonly [string, number])[] };

export type TallyView = {
  calls: number;
  accepted: number;
  refused: number;
  unknown: number;
  /** Share of calls that were accepted; null without calls. */
  successRate: number | null;
  meanMs: number | null;
  /** Upper bound of the class that half, and 95 of 100, of the calls are in; null without calls. */
  p50Ms: number | null;
  p95Ms: number | null;
  errors: TallyError[];
  /** Calls by minute; `troubled` are failures that are not their recipients' own. */
  minutes: { at: number; calls: number; failed: number; troubled: number }[];
  /** The last three minutes alone, without what is their recipients' own. */
  recent: { calls: number; troubled: number; errors: TallyError[] };
};

export type TallyError = { class: string; code: number; count: number };

const recentMinutes = 3;

/** A recipient that is not there, or was sent too much, says nothing of the channel. */
const ofRecipients = new Set(['unreachable', 'pair']);
/** Whether an outcome says that something is wrong with the channel. */
export const isTrouble = (field: string): boolean =>
  isOutcome(field) && field !== 'accepted' && !ofRecipients.has(field.split(':')[1] ?? '');

const sumOf = (minutes: readonly Minute[], wanted: (field: string) => boolean): number =>
  minutes
    .flatMap(({ fields }) => fields)
    .reduce((sum, [field, count]) => (wanted(field) ? sum + count : sum), 0);

const isOutcome = (field: string): boolean =>
  field === 'accepted' || field === 'unknown' || field.startsWith('refused:');

const longestMs = 10_000;

const quantile = (minutes: readonly Minute[], share: number): number | null => {
  const counts = bounds.map((bound) => sumOf(minutes, (field) => field === `b:${bound}`));
  const all = sumOf(minutes, (field) => field.startsWith('b:'));
  if (all === 0) return null;
  let below = 0;
  for (const [n, bound] of bounds.entries()) {
    below += counts[n] ?? 0;
    if (below >= all * share) return bound;
  }
  return longestMs;
};

const errorsOf = (minutes: readonly Minute[]): TallyView['errors'] => {
  const fields = minutes
    .flatMap((one) => one.fields)
    .filter(([field]) => field.startsWith('refused:'));
  return [...Map.groupBy(fields, ([field]) => field)]
    .map(([field, all]) => {
      const [, name = '', code = '0'] = field.split(':');
      return { class: name, code: Number(code), count: all.reduce((sum, [, n]) => sum + n, 0) };
    })
    .sort((one, other) => other.count - one.count);
};

const recentOf = (minutes: readonly Minute[]): TallyView['recent'] => ({
  calls: sumOf(minutes, isOutcome),
  troubled: sumOf(minutes, isTrouble),
  errors: errorsOf(minutes).filter((one) => !ofRecipients.has(one.class)),
});

/** Minutes in the order of time, folded into one view. */
export const foldTallies = (minutes: readonly Minute[]): TallyView => {
  const calls = sumOf(minutes, isOutcome);
  const accepted = sumOf(minutes, (field) => field === 'accepted');
  const unknown = sumOf(minutes, (field) => field === 'unknown');
  const totalMs = sumOf(minutes, (field) => field === 'ms');
  return {
    ...{ calls, accepted, unknown, refused: calls - accepted - unknown },
    successRate: calls === 0 ? null : accepted / calls,
    meanMs: calls === 0 ? null : Math.round(totalMs / calls),
    ...{ p50Ms: quantile(minutes, 0.5), p95Ms: quantile(minutes, 0.95) },
    errors: errorsOf(minutes),
    minutes: minutes.map((one) => {
      const inMinute = sumOf([one], isOutcome);
      return {
        at: one.at,
        calls: inMinute,
        failed: inMinute - sumOf([one], (f) => f === 'accepted'),
        troubled: sumOf([one], isTrouble),
      };
    }),
    recent: recentOf(minutes.slice(-recentMinutes)),
  };
};

// What rollups must hold, said plainly: every message counted one by one, without SQL.
import { idTime } from '../../lib/kernel/ids.ts';
import { type Facts, type Message, statusOf } from '../../lib/messages/rules.ts';
import { addHistograms, emptyHistogram, spanOfLatency } from '../../lib/reports/latency.ts';
import { type Counts, noCounts } from '../../lib/reports/rules.ts';

export type Known = { message: Message; facts: Facts };

const latency = (from: number | null, to: number | null): number | undefined =>
  from === null || to === null ? undefined : Math.max(to - from, 0);

const inSpan = (ms: number | undefined) =>
  emptyHistogram.map((_, index) => (ms !== undefined && spanOfLatency(ms) === index ? 1 : 0));

const spentOn = ({ message: { plan, priceMicros }, facts }: Known): number => {
  const status = statusOf(facts);
  if (plan === 'pay_per_success') return status === 'verified' ? priceMicros : 0;
  const taken = plan === 'per_message' && facts.acceptedAt !== null && status !== 'failed';
  return taken ? priceMicros : 0;
};

const countOne = (counts: Counts, known: Known): Counts => {
  const { facts } = known;
  const status = statusOf(facts);
  const arrived = [facts.deliveredAt, facts.readAt, facts.verifiedAt].some((at) => at !== null);
  const toDelivery = latency(facts.acceptedAt, facts.deliveredAt);
  const toVerification = latency(facts.acceptedAt, facts.verifiedAt);
  return {
    requested: counts.requested + 1,
    accepted: counts.accepted + Number(facts.acceptedAt !== null),
    delivered: counts.delivered + Number(arrived),
    verified: counts.verified + Number(status === 'verified'),
    failed: counts.failed + Number(status === 'failed'),
    expired: counts.expired + Number(status === 'expired'),
    spentMicros: counts.spentMicros + spentOn(known),
    deliverMs: counts.deliverMs + (toDelivery ?? 0),
    verifyMs: counts.verifyMs + (toVerification ?? 0),
    deliver: addHistograms(counts.deliver, inSpan(toDelivery)),
    verify: addHistograms(counts.verify, inSpan(toVerification)),
  };
};

const toRow = ({ deliver, verify, ...rest }: Counts): number[] => [
  ...[rest.requested, rest.accepted, rest.delivered, rest.verified, rest.failed, rest.expired],
  ...[rest.spentMicros, rest.deliverMs, rest.verifyMs, ...deliver, ...verify],
];

/** Rows of a rollup over spans of `spanMs`, in words: what it is of, and its counts. */
export const modelRollup = (all: readonly Known[], spanMs: number): string[] => {
  const groups = Map.groupBy(all, ({ message: { id, accountId, mode, country }, facts }) =>
    [accountId, mode, Math.floor(idTime(id) / spanMs), facts.channel ?? 'none', country].join(' '),
  );
  return [...groups]
    .map(([key, some]) => `${key}: ${toRow(some.reduce(countOne, noCounts)).join(' ')}`)
    .toSorted();
};

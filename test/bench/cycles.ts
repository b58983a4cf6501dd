// The order of the rounds, and which phones each of them gets.
import type { Operation } from './load-orders.ts';
import { type Bench, deliverCodes, type Round, runRound } from './rounds.ts';

/** Before anything is known: what a verify does against a send. */
const verifyAgainstSend = 2.5;
const margin = 1.25;
const unknownRate = 4_000;

const rateOf = (round: Round | undefined): number | undefined =>
  round && round.report.requests / round.report.seconds;

const lastRate = (rounds: readonly Round[], operation: Operation): number | undefined =>
  rateOf(rounds.findLast((round) => round.operation === operation));

/** Requests a second that a round may come to, judged by the rounds before it. */
export const expectedRate = (rounds: readonly Round[], operation: Operation): number => {
  const own = lastRate(rounds, operation);
  if (own !== undefined) return own * margin;
  const sends = lastRate(rounds, 'deliver') ?? lastRate(rounds, 'send');
  if ((operation === 'verify' || operation === 'totp') && sends !== undefined)
    return sends * verifyAgainstSend;
  return (lastRate(rounds, 'bare') ?? unknownRate) * margin;
};

/** Gives out phones, each once. */
const createPhones = () => {
  let next = 0;
  return {
    next: () => next,
    take: (count: number): number => {
      next += count;
      return next - count;
    },
  };
};

type Phones = ReturnType<typeof createPhones>;

const runSending = async (
  bench: Bench,
  at: { cycle: number; operation: Operation; count: number },
  phones: Phones,
): Promise<Round> => {
  const { cycle, operation, count } = at;
  const first = phones.next();
  if (operation === 'totp') await bench.enroll(first, count);
  else if (operation !== 'bare') await bench.learn(first, count);
  const round = await runRound(bench, cycle, { operation, first, count });
  phones.take(round.report.used);
  return round;
};

/** Verifies the codes of the deliver round just before, and of as many deliveries more as it takes. */
const runVerifying = async (
  bench: Bench,
  at: { cycle: number; count: number; delivered: number },
  phones: Phones,
): Promise<Round> => {
  const missing = Math.max(0, at.count - at.delivered);
  const first = phones.next() - at.delivered;
  if (missing > 0) {
    await bench.learn(phones.next(), missing);
    await deliverCodes(bench, phones.take(missing), missing);
  }
  const count = at.delivered + missing;
  return runRound(bench, at.cycle, { operation: 'verify', first, count });
};

/** Runs all rounds, one operation after the other, and tells of each as it ends. */
export const runCycles = async (
  bench: Bench,
  operations: readonly Operation[],
  onRound: (round: Round) => void,
): Promise<Round[]> => {
  const { cycles, seconds, warmupSeconds } = bench.options;
  const phones = createPhones();
  const rounds: Round[] = [];
  for (let cycle = 1; cycle <= cycles; cycle += 1) {
    let delivered = 0;
    for (const operation of operations) {
      const count = Math.ceil(expectedRate(rounds, operation) * (seconds + warmupSeconds));
      const round =
        operation === 'verify'
          ? await runVerifying(bench, { cycle, count, delivered }, phones)
          : await runSending(bench, { cycle, operation, count }, phones);
      delivered = operation === 'deliver' ? round.report.used : 0;
      rounds.push(round);
      onRound(round);
    }
  }
  return rounds;
};

// What slow clients must not do to the service; pure, so that a test can plant each violation.
import type { Invariant } from './judge.ts';
import type { AttackCounts } from './slow-attackers.ts';

/** Sends of one part of the run. */
export type SendTimes = {
  /** How long each answer of 200 took, ms. */
  ms: readonly number[];
  /** Statuses of all others; 0 is a connection that broke. */
  failures: readonly number[];
};

/** What was measured. */
export type SlowFindings = {
  before: SendTimes;
  during: SendTimes;
  attack: AttackCounts;
  /** Processes that ended meanwhile. */
  died: readonly string[];
  /** Resident memory of the API, MB, in the order of the looks: without the slow clients, and with all of them there. */
  rssBefore: readonly number[];
  rssDuring: readonly number[];
  /** Files and sockets that the API held open, looked at like its memory. */
  heldDuring: readonly number[];
  /** Longest answer of /health, ms; infinite when none came. */
  healthMs: number;
};

export const bounds = {
  /** p99 of the sends, times the one without slow clients. */
  p99Times: 2,
  /** Resident memory of a process, MB. */
  rssMb: 400,
  /** How much it may rise from the first half of the attack to the second, MB. */
  rssRiseMb: 40,
  healthMs: 2_000,
  /** Sockets and files of the API: its connections (MAX_CONNECTIONS) and what it has open anyway. */
  held: 4_000 + 200,
};

/** What a slow stranger may be answered: 503 at a limit, 400 at a deadline. */
const fitting = new Set(['400', '503']);

/** The value below which `share` of the values lie. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((left, right) => left - right)[Math.ceil(values.length * share) - 1] ?? 0;

const peak = (values: readonly number[]): number => Math.max(0, ...values);

const violated = (name: string, wrong: boolean, figure: string): Invariant => ({
  name,
  violations: wrong ? [figure] : [],
});

const allTaken = (name: string, { ms, failures }: SendTimes): Invariant =>
  violated(
    name,
    failures.length > 0 || ms.length === 0,
    `${failures.length} were not: ${[...new Set(failures)].join(', ')}`,
  );

/** Every figure as a line, for people. */
export const figuresOf = (found: SlowFindings): string[] => {
  const { before, during, attack, rssBefore, rssDuring, heldDuring, healthMs } = found;
  const times = ({ ms, failures }: SendTimes) =>
    `${ms.length} of ${ms.length + failures.length} sends taken, p50 ${percentile(ms, 0.5).toFixed(0)} ms, p99 ${percentile(ms, 0.99).toFixed(0)} ms`;
  const answers = Object.entries(attack.answers).map(([status, count]) => `${status}: ${count}`);
  return [
    `without slow clients   ${times(before)}, API at most ${peak(rssBefore).toFixed(0)} MB`,
    `beside slow clients    ${times(during)}, API at most ${peak(rssDuring).toFixed(0)} MB`,
    `slow clients           ${attack.opened} connections opened, ${attack.ended} ended by the API, which held ${peak(heldDuring)} sockets at most; answers ${answers.join(', ') || 'none'}`,
    `/health                ${healthMs.toFixed(0)} ms at most`,
  ];
};

/** Every invariant, with what violates it. */
export const judgeSlowClients = (found: SlowFindings): Invariant[] => {
  const { before, during, attack, died, rssDuring, heldDuring, healthMs } = found;
  const p99 = { before: percentile(before.ms, 0.99), during: percentile(during.ms, 0.99) };
  const half = Math.ceil(rssDuring.length / 2);
  const rise = peak(rssDuring.slice(half)) - peak(rssDuring.slice(0, half));
  const others = Object.entries(attack.answers).filter(([status]) => !fitting.has(status));
  return [
    violated('nothing dies', died.length > 0, died.join(', ')),
    allTaken('the machine carries the sends without slow clients', before),
    allTaken('every send beside slow clients is taken', during),
    violated(
      `p99 of the sends at most ${bounds.p99Times === 2 ? 'doubles' : `grows ${bounds.p99Times} times`}`,
      p99.during > p99.before * bounds.p99Times,
      `${p99.before.toFixed(0)} ms became ${p99.during.toFixed(0)} ms`,
    ),
    violated(
      'slow clients get 503, 400 at a deadline, or a closed connection',
      others.length > 0 || attack.ended === 0,
      `${attack.ended} ended, other answers: ${others.map(([status, count]) => `${count} × ${status}`).join(', ')}`,
    ),
    violated(
      'the API holds no more connections than it should',
      peak(heldDuring) > bounds.held,
      `${peak(heldDuring)} sockets`,
    ),
    violated(
      'the memory of the API stays flat',
      peak(rssDuring) > bounds.rssMb || rise > bounds.rssRiseMb || rssDuring.length < 2,
      `${peak(rssDuring).toFixed(0)} MB at most, ${rise.toFixed(0)} MB more in the second half`,
    ),
    violated('/health answers all along', healthMs > bounds.healthMs, `${healthMs.toFixed(0)} ms`),
  ];
};
